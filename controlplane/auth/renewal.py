"""Renewal of certificates and credentials while the process runs.

Decides how often they are checked, and that invalid files change nothing. Must not know how they
are created. Every control plane renews its own, whichever leads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from amphitrite.controlplane.auth import certificates, credentials, provided_certificates
from amphitrite.controlplane.auth.certificates import Certificates
from amphitrite.controlplane.auth.credentials import Credentials
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings

log = logging.getLogger(__name__)

#: Provided files are checked this often. The kubelet itself takes up to a minute to update a
#: Secret.
FILES_PERIOD_S = 5.0
#: A certificate of our own authority is renewed weeks before it expires. After a correction of the
#: clock it may be due at once.
OWN_PERIOD_S = 60.0


class Renewal:
    """``load``: the certificates that are valid at a time (seconds since the epoch). ``reload``:
    called with changed certificates. ``refresh``: applies changed credentials and returns whether
    there were any."""

    def __init__(
        self,
        load: Callable[[float], Certificates],
        reload: Callable[[Certificates], None],
        refresh: Callable[[], bool],
        period_s: float,
    ) -> None:
        self._load, self._reload, self._refresh, self._period_s = load, reload, refresh, period_s
        self._served: bytes | None = None

    def run(self, stop: threading.Event) -> None:
        """Checks now, and then every ``period_s`` until ``stop``."""
        while not stop.is_set():
            for task in (self.certificates, self.credentials):
                try:
                    task(time.time())
                except Exception as exc:
                    log.warning("renewal failed, the current certificates and credentials stay in use: %s", exc)
            stop.wait(self._period_s)

    def certificates(self, now: float) -> None:
        """Reloads the certificate if it differs from the previous one."""
        tls = self._load(now)
        served = tls.certificate_file.read_bytes()
        if self._served is not None and served != self._served:
            self._reload(tls)
            log.info("a renewed certificate is in use")
        self._served = served

    def credentials(self, now: float) -> None:
        """Applies changed credentials."""
        if self._refresh():
            log.info("renewed credentials are in use")


def certificate_loader(
    settings: Settings, hosts: tuple[str, ...], others: tuple[str, ...]
) -> Callable[[float], Certificates]:
    """Loads this control plane's certificates: provided ones, or those of its own authority for
    ``hosts`` and, if it permits them, ``others``."""
    home, directory = settings.home, settings.tls_directory
    if directory is not None:
        return lambda now: provided_certificates.load(directory, home)
    return lambda now: certificates.ensure(home, hosts, now, others)


def load_credentials(settings: Settings, home: Home) -> Credentials:
    """This control plane's credentials: provided ones, or its own."""
    directory = settings.credentials_directory
    return credentials.ensure(home) if directory is None else credentials.load(directory)


def credentials_refresher(settings: Settings, held: Credentials) -> Callable[[], bool]:
    """Applies changes of provided credentials to ``held``. Our own never change."""
    directory = settings.credentials_directory
    if directory is None:
        return lambda: False
    return lambda: credentials.refresh(held, directory)


def period_s(settings: Settings) -> float:
    provided = settings.tls_directory is not None or settings.credentials_directory is not None
    return FILES_PERIOD_S if provided else OWN_PERIOD_S
