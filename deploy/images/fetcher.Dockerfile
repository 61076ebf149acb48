# The model fetcher, which runs before Triton in each of its pods: Python's standard library and one package of ours.
# How to build it: deploy/images/README.md. What must be writable: the cache directory. The root may be read-only.
ARG BASE=docker.io/library/python:3.11-slim-bookworm

FROM ${BASE} AS product
WORKDIR /product/lib
COPY dataplane/__init__.py amphitrite/dataplane/
COPY dataplane/fetch amphitrite/dataplane/fetch
RUN PYTHONHASHSEED=0 python3 -m compileall -q --invalidation-mode unchecked-hash .

FROM ${BASE}
COPY deploy/images/settle.sh /tmp/settle.sh
RUN sh /tmp/settle.sh && rm /tmp/settle.sh
COPY --from=product /product /opt/amphitrite
ENV HOME=/tmp \
    PYTHONPATH=/opt/amphitrite/lib \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1
WORKDIR /
USER 65532:65532
ENTRYPOINT ["python", "-m", "amphitrite.dataplane.fetch"]
ARG VERSION=0 REVISION=unknown
LABEL org.opencontainers.image.title="Amphitrite model fetcher" \
      org.opencontainers.image.description="Fetches one model version to the cache of its node" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="Amphitrite" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
