"""What is garbage: what nobody needs and nobody may be about to need."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.core.storage.garbage import (
    AGE_S,
    Kind,
    StoredItem,
    UploadedFile,
    is_garbage,
    uploads,
)

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("kind", "age_s", "garbage"),
    [
        *((kind, AGE_S + 1, True) for kind in get_args(Kind)),
        *((kind, AGE_S - 1, False) for kind in ("upload", "content", "unfinished", "build")),
        *((kind, 0.0, True) for kind in ("repository", "instance", "backends")),
    ],
)
def test_age_protects_what_cannot_be_made_again(kind: Kind, age_s: float, garbage: bool) -> None:
    item = StoredItem(kind, "x", 1, 1, NOW - age_s, needed=False)
    assert is_garbage(item, NOW) is garbage
    assert not is_garbage(replace(item, needed=True), NOW)


FILES = st.lists(
    st.builds(
        UploadedFile,
        path=st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")).map(lambda p: f"LocalUpload/{p[0]}/m/{p[1]}"),
        digest=st.just("0" * 64),
        size=st.integers(0, 9),
        modified_at=st.floats(NOW - 2 * AGE_S, NOW),
    )
)


@given(FILES, st.sets(st.sampled_from(["LocalUpload/a/m/x", "LocalUpload/b/m/y"])))
def test_an_upload_goes_as_a_whole_and_never_with_a_young_or_registered_file(
    files: list[UploadedFile], registered: set[str]
) -> None:
    found = uploads(files, registered)
    assert sorted(file.path for some in found.values() for file in some) == sorted(file.path for file in files)
    for upload, some in found.items():
        assert (upload.files, upload.size) == (len(some), sum(file.size for file in some))
        protected = any(
            file.modified_at >= NOW - AGE_S or f"{upload.name}/" in f"{path}/" for file in some for path in registered
        )
        young = any(file.modified_at >= NOW - AGE_S for file in some)
        assert is_garbage(upload, NOW) is not (protected or young)
