# Proofload as a container image: one static program, and the authorities that it trusts. It is what generators in a cluster run as
# (docs/many-machines.md):
#
#   docker build --tag registry.example/proofload:0.1.0 . && docker push registry.example/proofload:0.1.0
FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
# Static with the C library of the build, and no other: nothing else has to be in the image. A target is named so that the flag is
# for the program alone and not for what helps to build it.
RUN target="$(rustc -vV | sed -n 's/^host: //p')" \
    && RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile dist --locked -p proofload --target "$target" \
    && install -D --strip "target/$target/dist/proofload" /image/proofload \
    && install -D --mode 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt

FROM scratch
COPY --from=build /image/ /
# Nobody, as a number: Kubernetes can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/proofload"]
