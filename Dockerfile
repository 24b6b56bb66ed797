# SPDX-License-Identifier: Apache-2.0
# docker build -t fairlane .      A wheel that `make dist` left in dist/ is taken; without one it is built here.
FROM rust:1.95.0-bookworm AS tools
WORKDIR /src
COPY setup/setup.sh setup/packages.txt setup/
RUN setup/setup.sh packages

FROM tools AS wheel
COPY . .
RUN ls dist/*.whl || make dist

FROM debian:12-slim AS environment
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv
COPY --from=wheel /src/setup/constraints.txt /src/dist/*.whl /wheel/
RUN python3 -m venv /opt/fairlane && /opt/fairlane/bin/pip install --no-cache-dir -c /wheel/constraints.txt /wheel/*.whl
RUN ln -s /opt/fairlane/lib/python3*/site-packages/fairlane_tree/p4src/compiled /opt/fairlane/programs

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends iproute2 iputils-ping python3 && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home fairlane
COPY --from=environment /opt/fairlane /opt/fairlane
ENV PATH=/opt/fairlane/bin:$PATH
USER fairlane
WORKDIR /home/fairlane
CMD ["fairlane", "--help"]
