"""The tables, as SQLAlchemy describes them.

Decides columns, keys and indexes, with types that both databases have. Must not know who reads or
writes them. A change here needs a new file in ``migrations/versions`` and its name in ``REVISION``;
a test compares the two.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

#: The newest revision in ``migrations/versions``.
REVISION = "0013"

metadata = MetaData()


def _sorted(length: int) -> TypeEngine[str]:
    """Text that is sorted or searched by prefix, by code points: SQLite's default, PostgreSQL's
    collation C."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def _resource_columns() -> list[Column[Any]]:
    """The common columns of endpoints and deployments: the user's first, then the reconciler's."""
    return [
        Column("name", String(255), nullable=False),
        Column("document", JSON, nullable=False),
        Column("etag", String(64), nullable=False),
        Column("generation", BigInteger, nullable=False),
        Column("first_generation", BigInteger, nullable=False),
        Column("created_at", Float, nullable=False),
        Column("modified_at", Float, nullable=False),
        Column("deleting", Boolean, nullable=False),
        Column("state", String(32), nullable=False),
        Column("observed_generation", BigInteger, nullable=False),
        Column("ever_succeeded", Boolean, nullable=False),
        Column("phase", String(255), nullable=False),
        Column("message", Text, nullable=False),
        Column("error", JSON(none_as_null=True)),
        Column("facts", JSON, nullable=False),
    ]


#: ``key``: the name in lower case (``schemas.names.key``).
endpoints = Table(
    "endpoints",
    metadata,
    Column("key", _sorted(255), primary_key=True),
    Column("primary_key", String(64), nullable=False),
    Column("secondary_key", String(64), nullable=False),
    *_resource_columns(),
)

#: ``model`` and ``compute``: what the document's references resolve to; see
#: ``state.store.Store.put_deployment``. ``paused_at`` and ``paused_by``: null unless it is paused.
deployments = Table(
    "deployments",
    metadata,
    Column("endpoint", _sorted(255), ForeignKey("endpoints.key"), primary_key=True),
    Column("key", _sorted(255), primary_key=True),
    Column("model", JSON, nullable=False),
    Column("compute", String(255), nullable=False, server_default="local"),
    *_resource_columns(),
    Column("paused_at", Float),
    Column("paused_by", String(255)),
)

#: Without a foreign key: clients read an operation after its resource is gone. ``phases``: [phase,
#: message, time of entry].
operations = Table(
    "operations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("endpoint", String(255), nullable=False),
    Column("deployment", String(255)),
    Column("verb", String(32), nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("status", String(32), nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("phases", JSON, nullable=False),
    Column("error", JSON(none_as_null=True)),
    Index("operations_by_resource", "endpoint", "deployment"),
    Index("operations_by_status", "status", "ended_at"),
)

#: ``retired_generation``: the highest generation of any removed resource.
counters = Table(
    "counters",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

#: At most one row, the last published table (``dataplane.table.json_codec.to_json``).
routing_tables = Table(
    "routing_tables",
    metadata,
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("content", JSON, nullable=False),
)

#: ``block_ids``: the block list that the blob was committed with; null if it was uploaded in one
#: request.
blobs = Table(
    "blobs",
    metadata,
    Column("path", _sorted(1024), primary_key=True),
    Column("digest", String(64), nullable=False, index=True),
    Column("size", BigInteger, nullable=False),
    Column("content_type", String(255), nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("block_ids", JSON(none_as_null=True)),
    Column("created_at", Float, nullable=False),
    Column("modified_at", Float, nullable=False),
)

#: Uploaded blocks that are not committed yet. ``file``: their name in the content store.
blocks = Table(
    "blocks",
    metadata,
    Column("path", _sorted(1024), primary_key=True),
    Column("block_id", String(255), primary_key=True),
    Column("file", String(64), nullable=False, unique=True),
    Column("size", BigInteger, nullable=False),
    Column("created_at", Float, nullable=False),
)

models = Table(
    "models",
    metadata,
    Column("key", _sorted(255), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("tags", JSON, nullable=False),
    Column("properties", JSON, nullable=False),
    Column("is_archived", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("modified_at", Float, nullable=False),
)

#: ``ordinal``: the order of creation, because times may be equal. ``used_at``: when a deployment
#: last used it, as far as that was noticed; null if never.
model_versions = Table(
    "model_versions",
    metadata,
    Column("model", _sorted(255), ForeignKey("models.key"), primary_key=True),
    Column("version", String(255), primary_key=True),
    Column("ordinal", Integer, nullable=False),
    Column("document", JSON, nullable=False),
    Column("digest", String(64), nullable=False, index=True),
    Column("model_names", JSON, nullable=False),
    Column("is_anonymous", Boolean, nullable=False),
    Column("is_archived", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("modified_at", Float, nullable=False),
    Column("used_at", Float),
)

#: The files of each version, frozen when it was registered. ``blob_path``: where the file was
#: uploaded.
model_files = Table(
    "model_files",
    metadata,
    Column("model", _sorted(255), primary_key=True),
    Column("version", String(255), primary_key=True),
    Column("path", _sorted(1024), primary_key=True),
    Column("blob_path", _sorted(1024), nullable=False, index=True),
    Column("digest", String(64), nullable=False, index=True),
    Column("size", BigInteger, nullable=False),
    ForeignKeyConstraint(["model", "version"], ["model_versions.model", "model_versions.version"]),
)

environments = Table(
    "environments",
    metadata,
    Column("key", _sorted(255), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("tags", JSON, nullable=False),
    Column("properties", JSON, nullable=False),
    Column("is_archived", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("modified_at", Float, nullable=False),
)

#: ``document``: the snake_case environment document. ``ordinal``: as in ``model_versions``.
environment_versions = Table(
    "environment_versions",
    metadata,
    Column("environment", _sorted(255), ForeignKey("environments.key"), primary_key=True),
    Column("version", String(255), primary_key=True),
    Column("ordinal", Integer, nullable=False),
    Column("document", JSON, nullable=False),
    Column("is_anonymous", Boolean, nullable=False),
    Column("is_archived", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("modified_at", Float, nullable=False),
)

#: Code assets. ``hash``: the client's hash of the files, null if it sent none.
code_versions = Table(
    "code_versions",
    metadata,
    Column("name", _sorted(255), primary_key=True),
    Column("version", String(255), primary_key=True),
    Column("document", JSON, nullable=False),
    Column("hash", String(255), index=True),
    Column("created_at", Float, nullable=False),
    Column("modified_at", Float, nullable=False),
)

#: Key pairs that sign scoring tokens. ``private_key``: PEM. ``created_at`` decides which of them
#: signs.
signing_keys = Table(
    "signing_keys",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("private_key", Text, nullable=False),
    Column("created_at", Float, nullable=False),
)

#: Attached computes. ``document``: without the kubeconfig. ``kubeconfig``: null for the cluster
#: that the control plane runs in.
computes = Table(
    "computes",
    metadata,
    Column("key", _sorted(255), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("document", JSON, nullable=False),
    Column("kubeconfig", Text),
    Column("created_at", Float, nullable=False),
    Column("modified_at", Float, nullable=False),
)

#: The last report of each data-plane agent: see ``core.observed.observations.AgentReport``.
agent_reports = Table(
    "agent_reports",
    metadata,
    Column("id", _sorted(255), primary_key=True),
    Column("acknowledged_version", BigInteger, nullable=False),
    Column("drained_version", BigInteger, nullable=False),
    Column("rejected_version", BigInteger),
    Column("error", Text),
    Column("seen_at", Float, nullable=False),
    Column("proxy_pid", BigInteger),
    Column("proxy_version", Text),
)

#: ``minute``: since the epoch. ``content``: compressed JSON of
#: ``dataplane.metrics.counters.totals_to_json`` at the minute's end.
metric_minutes = Table(
    "metric_minutes",
    metadata,
    Column("agent", _sorted(255), primary_key=True),
    Column("minute", BigInteger, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

#: ``credential``: see ``dataplane.metrics.counters``. ``minute``: the last one in which it
#: authorized a request.
key_uses = Table(
    "key_uses",
    metadata,
    Column("endpoint", _sorted(255), primary_key=True),
    Column("credential", String(32), primary_key=True),
    Column("minute", BigInteger, nullable=False),
)

#: Documents as they were accepted. ``deployment``: empty for the endpoint itself. See
#: ``core.history.revisions``.
revisions = Table(
    "revisions",
    metadata,
    Column("endpoint", _sorted(255), primary_key=True),
    Column("deployment", _sorted(255), primary_key=True),
    Column("generation", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("author", String(255), nullable=False),
    Column("reason", Text, nullable=False),
    Column("cause", String(32), nullable=False),
    Column("document", JSON, nullable=False),
)

#: The numbers of instances that scalers have set: see ``core.scaling.scales.Scale``.
deployment_scales = Table(
    "deployment_scales",
    metadata,
    Column("endpoint", _sorted(255), primary_key=True),
    Column("deployment", _sorted(255), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("count", Integer, nullable=False),
    Column("scaler", String(255), nullable=False),
    Column("reason", Text, nullable=False),
    Column("changed_at", Float, nullable=False),
    Column("shrunk_at", Float, nullable=False),
    Column("used_at", Float, nullable=False),
    Column("start_s", Float, nullable=False),
    Column("recommended", Integer),
)

#: ``number``: counts the events of a deployment. See ``core.scaling.scales.ScaleEvent``.
scale_events = Table(
    "scale_events",
    metadata,
    Column("endpoint", _sorted(255), primary_key=True),
    Column("deployment", _sorted(255), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("before", Integer, nullable=False),
    Column("after", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("by", String(255), nullable=False),
    Column("mode", String(32), nullable=False),
)

#: What one agent counted of scaled deployments between two flushes: see
#: ``reports.demand_samples``. ``id``: grows in the order of commits. ``flush``: unique among those
#: of an agent. ``at``: of the flush.
demand_samples = Table(
    "demand_samples",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("agent", _sorted(255), nullable=False),
    Column("flush", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Column("content", Text, nullable=False),
    Index("demand_samples_by_agent", "agent", "flush"),
)

#: ``number``: counts the rollouts of an endpoint. ``content``: see ``core.rollouts.rollout_json``.
rollouts = Table(
    "rollouts",
    metadata,
    Column("endpoint", _sorted(255), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("is_active", Boolean, nullable=False),
    Column("content", JSON, nullable=False),
)

#: ``endpoint``, ``deployment``: of the target, which need not exist. ``body``: see
#: ``state.autoscale_settings``.
autoscale_settings = Table(
    "autoscale_settings",
    metadata,
    Column("key", _sorted(255), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("endpoint", _sorted(255), nullable=False),
    Column("deployment", _sorted(255), nullable=False),
    Column("body", JSON, nullable=False),
    Column("etag", String(64), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("modified_at", Float, nullable=False),
    UniqueConstraint("endpoint", "deployment", name="autoscale_settings_by_target"),
)

#: One row. ``term``: counts the terms of leaders. See ``state.leader_term``.
leader_terms = Table(
    "leader_terms",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("term", BigInteger, nullable=False),
)

#: One row. ``oldest``: the oldest revision whose programs work with this schema; see
#: ``migrations``.
schema_support = Table("schema_support", metadata, Column("oldest", String(32), primary_key=True))
