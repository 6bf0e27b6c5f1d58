# The service, and with `--target agent` the agent of a gateway, each in one image: the same files as in the packages of a
# release. `--build-arg COMMIT=$(git rev-parse --short=12 HEAD)` lets them name the commit, which the build does not see.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY console/package.json console/
COPY cli/package.json cli/
RUN npm ci --no-audit --no-fund --workspace=console --workspace=cli --include-workspace-root
COPY tsconfig.json tsconfig.build.json CHANGELOG.md LICENSE ./
COPY src ./src
COPY scripts ./scripts
COPY packaging ./packaging
COPY console ./console
COPY cli ./cli
ARG COMMIT=unknown
RUN BUILD_COMMIT="$COMMIT" npm run packages -- --trees

FROM node:24.21.0-bookworm-slim AS agent
ENV NODE_ENV=production \
    SVC_AGENT_METRICS_ADDR=127.0.0.1:9105
COPY --from=build /app/dist/trees/gateway-agent /usr/lib/gateway-agent
# Who the machine is, if it joins. A named volume gets the owner of this folder.
RUN mkdir -m 700 /var/lib/gateway-agent && chown node:node /var/lib/gateway-agent
USER node
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9105/healthz', { signal: AbortSignal.timeout(4000) }).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/usr/lib/gateway-agent/gateway-agent.cjs"]

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production \
    SVC_DATA_DIR=/data
COPY --from=build /app/dist/trees/gateway-control /usr/lib/gateway-control
# A named volume gets the owner of this folder.
RUN mkdir /data && chown node:node /data && chmod 700 /data
WORKDIR /data
USER node
VOLUME /data
# REST, agents.
EXPOSE 8081 8443
# Checks liveness, not readiness: an instance that is catching up must not be restarted.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "const { SVC_HTTP_LISTEN_ADDR: at, SVC_HTTP_TLS_CERT_FILE: tls } = process.env; const port = (at || ':8081').split(':').at(-1); require(tls ? 'https' : 'http').get({ port, host: '127.0.0.1', path: '/healthz', rejectUnauthorized: false, timeout: 4000 }, (r) => process.exit(r.statusCode === 200 ? 0 : 1)).on('timeout', () => process.exit(1)).on('error', () => process.exit(1))"]
# No npm and no shell in between, so that signals reach the service.
ENTRYPOINT ["node", "/usr/lib/gateway-control/dist/gateway-control.js"]
