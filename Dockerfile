# stepop in a container, for processors; with --build-arg TORCH=cuda for NVIDIA's GPUs.
#   docker build -t stepop .
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" stepop -n digits -b configs/digits.yaml -t
FROM debian:12 AS build
ARG TORCH=cpu
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates make
COPY . /stepop
WORKDIR /stepop
RUN STEPOP_TORCH=$TORCH make package

FROM debian:12
# The package brings LibTorch and asks for what else it needs; g++ compiles code of yours, and Python runs what is yours in Python.
RUN --mount=type=bind,from=build,source=/stepop/build,target=/packages \
    apt-get update && apt-get install -y --no-install-recommends /packages/stepop_*.deb g++ python3 && \
    rm -rf /var/lib/apt/lists/* && stepop prepare
# Whoever runs it keeps what is compiled in a home that all may write to.
RUN useradd --create-home stepop && chmod 1777 /home/stepop
ENV HOME=/home/stepop
USER stepop
WORKDIR /work
ENTRYPOINT ["stepop"]
CMD ["--help"]
