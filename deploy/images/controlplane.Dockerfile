# The control plane: `ml server start`, told everything by its environment (ML_*). How to build it: deploy/images/README.md.
# What must be writable: ML_HOME (/var/lib/amphitrite) and /tmp. The root file system may be read-only.
ARG BASE=docker.io/library/python:3.11-slim-bookworm

# Wheels come from PyPI, or from a directory given as --build-context wheels=DIRECTORY: then nothing is fetched.
FROM scratch AS wheels

FROM ${BASE} AS dependencies
ARG SOURCE_DATE_EPOCH=315532800
WORKDIR /build
RUN python3 -m venv tools && python3 -m venv --without-pip /opt/amphitrite
COPY deploy/lock.py deploy/lock.txt deploy/images/install.sh ./
RUN --mount=type=bind,from=wheels,target=/wheels \
    sh install.sh dependencies controlplane

FROM dependencies AS product
ARG SOURCE_DATE_EPOCH=315532800
COPY pyproject.toml README.md LICENSE source/
COPY cli source/cli
COPY controlplane source/controlplane
COPY dataplane source/dataplane
COPY schemas source/schemas
COPY src source/src
RUN sh install.sh product ./source

FROM ${BASE}
COPY deploy/images/settle.sh /tmp/settle.sh
RUN sh /tmp/settle.sh && rm /tmp/settle.sh
COPY --from=dependencies /opt/amphitrite /opt/amphitrite
COPY --from=product /product /opt/amphitrite
ENV PATH=/opt/amphitrite/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/var/lib/amphitrite \
    ML_HOME=/var/lib/amphitrite \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1
WORKDIR /var/lib/amphitrite
USER 65532:65532
ENTRYPOINT ["ml", "server", "start"]
ARG VERSION=0 REVISION=unknown
LABEL org.opencontainers.image.title="Amphitrite control plane" \
      org.opencontainers.image.description="REST API and reconciler of managed online endpoints" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="Amphitrite" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
