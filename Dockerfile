# Proofload as a container image: one static program and the certificate authorities that it trusts. Generators in a cluster run it
# (docs/many-machines.md):
#
#   docker build --tag registry.example/proofload:0.1.0 . && docker push registry.example/proofload:0.1.0
FROM rust:1.95-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1 AS build
WORKDIR /source
COPY . .
# Statically linked, so that the image needs nothing else. The target is named so that the flag applies to the program and not to build
# scripts.
RUN target="$(rustc -vV | sed -n 's/^host: //p')" \
    && RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile dist --locked -p proofload --target "$target" \
    && install -D --strip "target/$target/dist/proofload" /image/proofload \
    && install -D --mode 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt

# The same with kubectl beside it: for Proofload itself in a pod, where it starts generators in its own cluster. Generators need none.
#
#   docker build --target controller --tag registry.example/proofload-controller:0.1.0 .
FROM scratch AS controller
COPY --from=build /image/ /
COPY --from=registry.k8s.io/kubectl:v1.33.13 /bin/kubectl /bin/kubectl
ENV PATH=/bin
USER 65532:65532
ENTRYPOINT ["/proofload"]

FROM scratch
COPY --from=build /image/ /
# Not root, as a number, so that Kubernetes can check it.
USER 65532:65532
ENTRYPOINT ["/proofload"]
