"""What the data of this server takes, and what of it can be freed.

Decides how things are counted: content once, however many versions have it, and what lies on this
machine by its directory. ``core.storage.garbage`` decides what is garbage. Must not know HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from amphitrite.controlplane.core.storage.garbage import AGE_S, StoredItem, is_garbage
from amphitrite.controlplane.services.in_use_models import digests_in_use, versions_in_use
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.content.inventory import Inventory, measure
from amphitrite.schemas.names import key

#: Kind of a stored item -> the row that counts it.
_ROWS = {
    "repository": "repositories",
    "unfinished": "unfinished uploads",
    "instance": "instances",
    "backends": "backends",
    "build": "compiled backends",
}


def usage(services: Services) -> dict[str, Any]:
    """Model versions with their users, and rows that add up to all of the space.

    ``freeable``: what ``prune`` would delete now. Sizes: bytes. Raises what the content store and
    the runtime raise.
    """
    now = services.clock()
    found = services.models.inventory(now, digests_in_use(services.store, services.runtime))
    stored = services.runtime.stored()
    rows = [*_content_rows(found, services.blobs.content.place, now)]
    machine = [*found.unfinished, *found.repositories, *stored]
    for kind, name in _ROWS.items():
        some = [item for item in machine if item.kind == kind]
        # Compiled backends belong to the environment that this runs in; their names are paths.
        place = Path(some[0].name).parent if some and kind == "build" else services.settings.home.root
        rows.append(_row(name, str(place), some, now))
    return {"models": _models(services, now), "rows": [*rows, *_other_rows(services)]}


def prune(services: Services, *, age_s: float, dry_run: bool) -> dict[str, Any]:
    """Deletes garbage, or with ``dry_run`` says what it is. ``kept``: what nobody needs, but that
    is younger than ``age_s``."""
    now = services.clock()
    in_use = digests_in_use(services.store, services.runtime)
    result = services.models.collect_garbage(now, in_use, age_s=age_s, dry_run=dry_run)
    here = [item for item in services.runtime.stored() if is_garbage(item, now, age_s)]
    gone = [*result.items, *(item for item in here if dry_run or services.runtime.discard(item))]
    names = {"content": "model files", **_ROWS}
    by_name = {name: [item for item in gone if names[item.kind] == name] for name in names.values()}
    young = [item for item in result.young if item.kind != "content"]
    return {
        "dryRun": dry_run,
        "freed": [{"name": name, **_sums(some)} for name, some in by_name.items() if some],
        **_sums(gone),
        "kept": {**_sums(young), "olderThan": age_s},
    }


def _models(services: Services, now: float) -> list[dict[str, Any]]:
    users = versions_in_use(services.store, services.runtime)
    return [
        {
            "name": version.name,
            "version": version.version,
            "files": version.files,
            "size": version.size,
            "archived": version.is_archived,
            "anonymous": version.is_anonymous,
            "usedBy": list(by := users.get((key(version.name), version.version), ())),
            "lastUsed": _time(now if by else version.used_at),
        }
        for version in services.models.list_all()
    ]


def _content_rows(found: Inventory, place: str, now: float) -> Iterable[dict[str, Any]]:
    registered = [item for item in found.content if item.name in found.registered]
    others = [item for item in found.content if item.name not in found.registered]
    yield _row("model files", place, registered, now)
    yield _row("uploads without a version", place, others, now)


def _other_rows(services: Services) -> Iterable[dict[str, Any]]:
    """Logs, the database, and the small files of ML_HOME."""
    home, (place, size) = services.settings.home, services.store.space()
    yield _measured("logs", home.logs, [home.logs])
    yield {"name": "database", "place": place, "files": 1, "size": size, "freeable": 0}
    yield _measured("other", home.root, [home.certificates, home.credentials, home.dataplane, home.root / "run"])


def _measured(name: str, place: Path, paths: Iterable[Path]) -> dict[str, Any]:
    files, size = measure(paths)
    return {"name": name, "place": str(place), "files": files, "size": size, "freeable": 0}


def _row(name: str, place: str, items: Iterable[StoredItem], now: float) -> dict[str, Any]:
    some = list(items)
    freeable = sum(item.size for item in some if is_garbage(item, now, AGE_S))
    return {"name": name, "place": place, **_sums(some), "freeable": freeable}


def _sums(items: Iterable[StoredItem]) -> dict[str, int]:
    some = list(items)
    return {"files": sum(item.files for item in some), "size": sum(item.size for item in some)}


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
