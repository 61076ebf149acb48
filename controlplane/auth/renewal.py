"""Certificates and credentials that change while the process runs.

Decides how often they are looked at, and that what cannot be used (yet) leaves everything as it is. Must not know how
either is made: every control plane looks after its own, whoever leads.
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

#: Files of others are looked at this often; the kubelet itself takes up to a minute to bring a changed Secret.
FILES_PERIOD_S = 5.0
#: Our own certificate is renewed weeks before it ends.
OWN_PERIOD_S = 3600.0


class Renewal:
    """``load``: the certificates that are good at a time (seconds since the epoch); ``reload`` is given changed ones;
    ``refresh`` takes over changed credentials and says whether there were any."""

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
        """Now, and again and again until ``stop``."""
        while not stop.is_set():
            for task in (self.certificates, self.credentials):
                try:
                    task(time.time())
                except Exception as exc:
                    log.warning("renewal failed, everything stays as it is: %s", exc)
            stop.wait(self._period_s)

    def certificates(self, now: float) -> None:
        """Hand over the certificate if it is another one than before."""
        tls = self._load(now)
        served = tls.certificate_file.read_bytes()
        if self._served is not None and served != self._served:
            self._reload(tls)
            log.info("serving with a renewed certificate")
        self._served = served

    def credentials(self, now: float) -> None:
        """Take over changed ones, whatever the time is."""
        if self._refresh():
            log.info("renewed credentials are in force")


def tls(settings: Settings, hosts: tuple[str, ...]) -> Callable[[float], Certificates]:
    """Where this control plane's certificates come from."""
    home, directory = settings.home, settings.tls_directory
    if directory is not None:
        return lambda now: provided_certificates.load(directory, home)
    return lambda now: certificates.ensure(home, hosts, now)


def secrets(settings: Settings, home: Home) -> Credentials:
    """This control plane's credentials: handed in, or its own."""
    directory = settings.credentials_directory
    return credentials.ensure(home) if directory is None else credentials.given(directory)


def refresher(settings: Settings, held: Credentials) -> Callable[[], bool]:
    """What takes over renewed credentials; our own never change by themselves."""
    directory = settings.credentials_directory
    if directory is None:
        return lambda: False
    return lambda: credentials.refresh(held, directory)


def period_s(settings: Settings) -> float:
    given = settings.tls_directory is not None or settings.credentials_directory is not None
    return FILES_PERIOD_S if given else OWN_PERIOD_S
