"""Construction of one control plane from its settings.

Decides which objects exist and how they depend on each other. The caller's stack closes what is
opened here. Must not know when anything starts or ends (``process.running``).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from amphitrite.controlplane.agents.agent_registry import AgentRegistry, TableFeed
from amphitrite.controlplane.agents.stored_changes import StoredChanges
from amphitrite.controlplane.auth.credentials import Credentials
from amphitrite.controlplane.auth.fetch_grants import Delivery
from amphitrite.controlplane.auth.oidc_keys import IssuerKeys
from amphitrite.controlplane.auth.random_text import random_text
from amphitrite.controlplane.clusters import built_in_compute
from amphitrite.controlplane.clusters.cluster_access import ClusterAccess
from amphitrite.controlplane.clusters.cluster_runtimes import Clusters
from amphitrite.controlplane.leadership import leadership_choice
from amphitrite.controlplane.leadership.election import Leadership
from amphitrite.controlplane.leadership.leader_tasks import LeaderTasks
from amphitrite.controlplane.reconciliation.autoscaler import Autoscaler, Scaler
from amphitrite.controlplane.reconciliation.demand_scaler import TargetUtilization
from amphitrite.controlplane.reconciliation.leader_loop import LeaderLoop
from amphitrite.controlplane.reconciliation.maintenance import Maintenance
from amphitrite.controlplane.reconciliation.reconciler import Reconciler
from amphitrite.controlplane.reconciliation.rollout_driver import RolloutDriver
from amphitrite.controlplane.reconciliation.setting_scaler import SettingScaler
from amphitrite.controlplane.reconciliation.token_issuers import Issuers
from amphitrite.controlplane.reconciliation.usage_sampler import UsageSampler
from amphitrite.controlplane.runtimes.composite import CompositeRuntime
from amphitrite.controlplane.runtimes.isolation.support import Isolation
from amphitrite.controlplane.runtimes.runtime import MeasuredRuntime
from amphitrite.controlplane.services import model_validation
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.store.assets.code_store import CodeStore
from amphitrite.controlplane.store.assets.environment_store import EnvironmentStore
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.blob_store import Limits
from amphitrite.controlplane.store.content.content_store import open_content
from amphitrite.controlplane.store.content.manifest_files import StoredFiles
from amphitrite.controlplane.store.reports.agent_reports import StoredAgents
from amphitrite.controlplane.store.reports.demand_samples import StoredSamples
from amphitrite.controlplane.store.reports.key_uses import KeyUses
from amphitrite.controlplane.store.reports.metric_minutes import StoredMetrics
from amphitrite.controlplane.store.sql import write_ahead_log
from amphitrite.controlplane.store.sql.transactions import parse
from amphitrite.controlplane.store.state.database import SqlStore, open_store
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import workspace_id

log = logging.getLogger(__name__)

#: How long to wait for a database server at start, and the pause between two attempts (seconds).
START_TIMEOUT_S = 60.0
STORE_RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """What ``process.running`` starts and ends."""

    services: Services
    leadership: Leadership
    leader_tasks: LeaderTasks
    stored_changes: StoredChanges


def assemble(
    settings: Settings,
    secrets: Credentials,
    fetch_ca: str | None,
    isolation: Isolation,
    stack: ExitStack,
    ending: threading.Event,
) -> ControlPlane:
    """``fetch_ca``: our certificate authority in PEM; None for a public one. ``isolation``: of
    instances on this machine.

    Raises Error: RuntimeUnavailable, BadArgument, Unsupported, KubernetesUnaccessible.
    """
    limits = settings.limits
    store = _open_store(settings, ending)
    stack.callback(store.close)
    content = open_content(settings.models_url, settings.home.models, time.time)

    def check(files: StoredFiles) -> None:
        on_clusters = built_in is not None or bool(store.list_computes())
        model_validation.check(files, model_validation.server(os.environ, on_clusters))

    file_limits = Limits(file_bytes=limits.file_bytes)
    models = ModelStore(store.database, content, settings.home.models, file_limits, check=check)
    feed = TableFeed()
    delivery = Delivery(secrets.fetch_key, time.time)
    leadership = leadership_choice.choose(settings, store, stack, ending)

    local = _local(settings, models, isolation)
    runtime = CompositeRuntime(local)
    stack.callback(runtime.close)
    access = ClusterAccess(settings, models, delivery, fetch_ca)
    built_in = built_in_compute.built_in(settings)
    clusters = Clusters(runtime, built_in, store.list_computes, access.runtime)
    clusters.refresh()

    def wake_passes() -> None:
        reconciler.wake()
        autoscaler.wake()
        rollouts.wake()

    def wake() -> None:
        stored_changes.wake()
        wake_passes()

    shared = store.database.is_shared
    registry = StoredAgents(store.database, wake) if shared else AgentRegistry(wake)
    oidc = None if settings.tokens.issuer is None else IssuerKeys(settings.tokens.issuer, wake)
    reconciler = Reconciler(
        store,
        runtime,
        registry,
        feed,
        time.time,
        max_body_bytes=limits.scoring_body_bytes,
        max_unsized_body_bytes=limits.scoring_unsized_body_bytes,
        may_act=leadership.leading,
        issuers=Issuers(store, settings.tokens, lambda: None if oidc is None else oidc.jwks()),
    )
    runtime.watch(reconciler.wake)
    samples = StoredSamples(store.database)
    own_cluster = () if built_in is None else (built_in,)
    utilization = TargetUtilization(store, samples, registry, runtime, lambda: [*own_cluster, *store.list_computes()])
    metrics = StoredMetrics(store.database)
    workspace = workspace_id(settings.subscription, settings.resource_group, settings.workspace)
    by_settings = SettingScaler(store, metrics, lambda now: bool(registry.live(now)), workspace)
    scalers: tuple[Scaler, ...] = (utilization, by_settings)
    scaling = Autoscaler(store, scalers, reconciler.wake, leadership.leading)
    autoscaler = LeaderLoop("autoscaler", scaling.make_pass, time.time, utilization.begin)
    driver = RolloutDriver(store, metrics, registry, wake, leadership.leading)
    rollouts = LeaderLoop("rollouts", driver.make_pass, time.time)
    stored_changes = StoredChanges(store.database.listen, store.published, feed, clusters.refresh, wake_passes)
    other_tasks = [("maintenance", Maintenance(store, models, runtime).run)]
    if local is not None:
        name = f"usage-{random_text(16)}"
        other_tasks.append(("usage", UsageSampler(local.usage, metrics, time.time, name).run))
    if oidc is not None:
        other_tasks.append(("issuer keys", oidc.run))
    if settings.cluster.table_secret is not None:
        other_tasks.append(("table secret", access.table_secret(feed, settings.cluster.table_secret, stack).run))
    leader_tasks = LeaderTasks(reconciler, other_tasks, [autoscaler, rollouts])
    services = Services(
        settings=settings,
        credentials=secrets,
        delivery=delivery,
        store=store,
        models=models,
        environments=EnvironmentStore(store.database),
        codes=CodeStore(store.database, models.blobs),
        blobs=models.blobs,
        agents=registry,
        metrics=metrics,
        key_uses=KeyUses(store.database),
        samples=samples,
        feed=feed,
        runtime=runtime,
        wake=wake,
        wake_autoscaler=autoscaler.wake,
        clock=time.time,
        last_pass=lambda: reconciler.last_pass,
        built_in=built_in,
        attach_check=access.check,
        leads_since=lambda: leader_tasks.since,
        ending=ending,
    )
    return ControlPlane(services, leadership, leader_tasks, stored_changes)


def _local(settings: Settings, models: ModelStore, isolation: Isolation) -> MeasuredRuntime | None:
    """The runtime of this machine. None in a pod, where no instances run."""
    if settings.runtime == "kubernetes" and not settings.embedded:
        return None
    from amphitrite.controlplane.runtimes.local.isolated_start import Surroundings
    from amphitrite.controlplane.runtimes.local.local_runtime import LocalRuntime

    stored = settings.models_url.removeprefix("file://") if settings.models_url.startswith("file://") else None
    directories = (settings.tls_directory, settings.credentials_directory, None if stored is None else Path(stored))
    return LocalRuntime(
        settings.home,
        models.repository,
        max_input_bytes=settings.limits.scoring_body_bytes,
        isolation=isolation,
        limits=settings.isolation.mode != "off",
        surroundings=Surroundings(
            tuple(path for path in directories if path is not None),
            settings.isolation.read,
            settings.isolation.write,
            own_network=settings.isolation.network == "none",
        ),
    )


def _open_store(settings: Settings, ending: threading.Event) -> SqlStore:
    """The store. Waits up to START_TIMEOUT_S for a database server, which may be starting too."""
    on_this_machine = settings.database_url.startswith("sqlite:")
    deadline = time.monotonic() + (0.0 if on_this_machine else START_TIMEOUT_S)
    if on_this_machine:
        file = parse(settings.database_url).database
        for problem in write_ahead_log.problems(Path(f"{file}-wal")):
            # Opening the database drops them, and nothing could tell afterwards.
            log.error("%s: %s", file, problem)
    while True:
        try:
            return open_store(settings.database_url)
        except Error as error:
            if error.code != "RuntimeUnavailable" or time.monotonic() > deadline or ending.wait(STORE_RETRY_S):
                raise
            log.warning("%s; trying again", error.message)
