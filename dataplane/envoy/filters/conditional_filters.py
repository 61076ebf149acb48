"""Filters that exist only for requests, or answers, which need them: all others pay a look at a header.

Decides how such a condition is said to Envoy (its ``composite`` filter). Must not know what the filters do. What is run
this way takes no configuration from routes: Envoy looks for that under the name of the outer filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_EXTENSIONS = "type.googleapis.com/envoy.extensions"
_COMPOSITE = f"{_EXTENSIONS}.filters.http.composite.v3"
_INPUTS = "type.googleapis.com/envoy.type.matcher.v3"

#: One condition.
Predicate = dict[str, Any]


def http_filter(name: str, condition: Predicate, run: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The filter for the connection manager. ``run``: filters, in their order, for what fulfils ``condition``."""
    chosen: dict[str, Any] = (
        {"typed_config": run[0]} if len(run) == 1 else {"filter_chain": {"typed_config": list(run)}}
    )
    action = {"name": "run", "typed_config": {"@type": f"{_COMPOSITE}.ExecuteFilterAction", **chosen}}
    return {
        "name": name,
        "typed_config": {
            "@type": f"{_EXTENSIONS}.common.matching.v3.ExtensionWithMatcher",
            "extension_config": {"name": "composite", "typed_config": {"@type": f"{_COMPOSITE}.Composite"}},
            "xds_matcher": {"matcher_list": {"matchers": [{"predicate": condition, "on_match": {"action": action}}]}},
        },
    }


def both(*conditions: Predicate) -> Predicate:
    """All of them, looked at in this order."""
    return {"and_matcher": {"predicate": list(conditions)}}


def requested(header: str) -> Predicate:
    """The request has this header, with whatever value."""
    return _single("HttpRequestHeaderMatchInput", header, _ANY)


def answered(header: str) -> Predicate:
    """The answer has this header, with whatever value."""
    return _single("HttpResponseHeaderMatchInput", header, _ANY)


def answer_begins_otherwise(header: str, prefix: str) -> Predicate:
    """The value of the answer's header does not begin so."""
    return {"not_matcher": _single("HttpResponseHeaderMatchInput", header, {"prefix": prefix})}


_ANY = {"safe_regex": {"google_re2": {}, "regex": r"\C*"}}


def _single(kind: str, header: str, value: dict[str, Any]) -> Predicate:
    source = {"name": header, "typed_config": {"@type": f"{_INPUTS}.{kind}", "header_name": header}}
    return {"single_predicate": {"input": source, "value_match": value}}
