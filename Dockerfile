# Tidegate as an image: `docker build --target cpu -t tidegate:0.1.0-cpu .`, or `--target gpu`. Both hold the same code
# on the same Python and differ in the lock that is installed. torch brings CUDA in its wheels, so the gpu image needs no
# CUDA base, only a machine whose container runtime hands the driver in.
#
# The base is pinned by version. A digest pins more: look it up where you build (`docker buildx imagetools inspect
# python:3.11.13-slim-bookworm`) and write it behind the tag. No secret is read while building, and none is in a layer:
# they are mounted when it runs. The root file system may be read-only; /data, /tmp and /dev/shm are written.

FROM python:3.11.13-slim-bookworm AS tools
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_NO_CACHE=1
RUN python -m pip install --no-cache-dir uv==0.13.9 && python -m venv /opt/tidegate
WORKDIR /src

# Our own code, built once for both targets, beside the environment instead of inside it: a change of ours moves one small
# layer, and the gigabytes of dependencies stay.
FROM tools AS code
COPY pyproject.toml README.md LICENSE ./
COPY domain domain
COPY retrieval retrieval
COPY generation generation
COPY eval eval
COPY serving serving
COPY load load
COPY tidegate tidegate
RUN uv build --wheel --out-dir /dist \
    && uv pip install --python /opt/tidegate/bin/python --no-deps --target /opt/code /dist/*.whl

FROM tools AS parts-cpu
COPY deploy/run.lock ./
RUN UV_TORCH_BACKEND=cpu uv pip install --python /opt/tidegate/bin/python --no-deps -r run.lock

FROM tools AS parts-gpu
COPY deploy/run-gpu.lock ./
RUN uv pip install --python /opt/tidegate/bin/python --no-deps -r run-gpu.lock

# What both have in common when they run.
FROM python:3.11.13-slim-bookworm AS run
RUN groupadd --gid 10001 tidegate \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /bin/bash tidegate \
    && install -d -o tidegate -g tidegate /data
# Ray's switches are serving/ray_home.py's, with the reasons; a test compares them. `tidegate serve` sets them by
# itself, `ray start` on a cluster finds them here.
ENV PATH=/opt/code/bin:/opt/tidegate/bin:$PATH \
    PYTHONPATH=/opt/code \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MLFLOW_DISABLE_TELEMETRY=true \
    OMP_NUM_THREADS=1 \
    RAY_USAGE_STATS_ENABLED=0 \
    RAY_SERVE_THROUGHPUT_OPTIMIZED=1 \
    RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S=60 \
    RAY_SERVE_METRICS_EXPORT_INTERVAL_MS=1000 \
    RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=serving.one_write:middlewares \
    RAY_SERVE_ENABLE_HA_PROXY=1 \
    RAY_SERVE_HAPROXY_RETRY_ON="conn-failure empty-response" \
    RAY_SERVE_HAPROXY_RETRIES=4 \
    RAY_SERVE_HAPROXY_TUNE_BUFSIZE=65536 \
    RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER=1s \
    RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S=1 \
    RAY_SERVE_HAPROXY_METRICS_ENABLED=0 \
    RAY_SERVE_HAPROXY_BINARY_PATH=/opt/deploy/haproxy.sh \
    TIDEGATE_DATA_DIR=/data/tidegate \
    TIDEGATE_SERVING__HOST=0.0.0.0 \
    # Whoever publishes the port decides who reaches it; access.mode decides what they may read.
    TIDEGATE_ACCESS__OPEN_TO_NETWORK=true
WORKDIR /data
COPY --chmod=755 deploy /opt/deploy
USER 10001:10001
EXPOSE 8000
VOLUME ["/data"]
# Healthy is "a gateway answers"; whether every stage is ready is /readyz, which an orchestrator asks by itself.
HEALTHCHECK --interval=10s --timeout=5s --start-period=300s --retries=3 \
    CMD ["python", "/opt/deploy/healthy.py", "http://127.0.0.1:8000/healthz"]
ENTRYPOINT ["tidegate"]
CMD ["serve"]

FROM run AS cpu
COPY --from=parts-cpu /opt/tidegate /opt/tidegate
COPY --from=code /opt/code /opt/code

FROM run AS gpu
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=parts-gpu /opt/tidegate /opt/tidegate
COPY --from=code /opt/code /opt/code
