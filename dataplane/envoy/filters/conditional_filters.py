"""Filters that run only for the requests or responses that need them.

All other requests cost one look at a header. Decides how Envoy is given such a condition (its
``composite`` filter). Must not know what the filters do. Routes cannot configure a filter that runs
this way: Envoy looks for that configuration under the name of the outer filter. Source: Envoy's
page "Composite Filter".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_EXTENSIONS = "type.googleapis.com/envoy.extensions"
_COMPOSITE = f"{_EXTENSIONS}.filters.http.composite.v3"
_INPUTS = "type.googleapis.com/envoy.type.matcher.v3"

#: One condition (``xds.type.matcher.v3.Matcher.MatcherList.Predicate``).
Predicate = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """The filters ``run``, in order, for what meets ``condition``, and then those of the rules in
    ``more`` whose conditions it meets too."""

    condition: Predicate
    run: Sequence[dict[str, Any]]
    more: Sequence[Rule] = ()


def http_filter(name: str, *rules: Rule) -> dict[str, Any]:
    """The filter for the connection manager: all rules whose condition is met, in this order.

    One filter for all, since the filter itself costs more than a condition.
    """
    return {
        "name": name,
        "typed_config": {
            "@type": f"{_EXTENSIONS}.common.matching.v3.ExtensionWithMatcher",
            "extension_config": {"name": "composite", "typed_config": {"@type": f"{_COMPOSITE}.Composite"}},
            "xds_matcher": (_chosen(rules, []) or {})["matcher"],
        },
    }


def _chosen(rules: Sequence[Rule], run: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The ``OnMatch`` of a request or response for which ``run`` is already chosen, and of which
    ``rules`` are still to be asked; None: nothing runs."""
    if rules:
        rule, *others = rules
        matcher: dict[str, Any] = {
            "predicate": rule.condition,
            "on_match": _chosen([*rule.more, *others], [*run, *rule.run]),
        }
        otherwise = _chosen(others, run)
        return {
            "matcher": {
                "matcher_list": {"matchers": [matcher]},
                **({} if otherwise is None else {"on_no_match": otherwise}),
            }
        }
    if not run:
        return None
    chosen: dict[str, Any] = (
        {"typed_config": run[0]} if len(run) == 1 else {"filter_chain": {"typed_config": list(run)}}
    )
    return {"action": {"name": "run", "typed_config": {"@type": f"{_COMPOSITE}.ExecuteFilterAction", **chosen}}}


def all_of(*conditions: Predicate) -> Predicate:
    """All conditions, tested in this order."""
    return {"and_matcher": {"predicate": list(conditions)}}


def request_has(header: str) -> Predicate:
    """The request has this header, with any value."""
    return _single("HttpRequestHeaderMatchInput", header, _ANY)


def request_contains(header: str, text: str) -> Predicate:
    """The request has this header, with ``text`` in its value, whatever its case."""
    return _single("HttpRequestHeaderMatchInput", header, {"contains": text, "ignore_case": True})


def response_has(header: str) -> Predicate:
    """The response has this header, with any value."""
    return _single("HttpResponseHeaderMatchInput", header, _ANY)


def response_lacks_prefix(header: str, prefix: str) -> Predicate:
    """The value of the response's header does not begin with ``prefix``."""
    return {"not_matcher": _single("HttpResponseHeaderMatchInput", header, {"prefix": prefix})}


_ANY = {"safe_regex": {"google_re2": {}, "regex": r"\C*"}}


def _single(kind: str, header: str, value: dict[str, Any]) -> Predicate:
    source = {"name": header, "typed_config": {"@type": f"{_INPUTS}.{kind}", "header_name": header}}
    return {"single_predicate": {"input": source, "value_match": value}}
