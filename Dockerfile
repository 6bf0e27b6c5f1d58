# The service, and with `--target agent` the agent of a gateway, each in one image: built with the development packages, run
# without them.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY console/package.json console/
RUN npm ci --no-audit --no-fund --workspace=console --include-workspace-root
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY scripts ./scripts
COPY console ./console
COPY cli ./cli
RUN npm run build && npm run build:agent && npm prune --omit=dev --no-audit --no-fund --workspaces=false

FROM node:24.21.0-bookworm-slim AS agent
ENV NODE_ENV=production \
    SVC_AGENT_METRICS_ADDR=127.0.0.1:9105
COPY --from=build /app/dist/agent/gateway-agent.cjs /usr/local/lib/gateway-agent.cjs
COPY LICENSE /usr/share/doc/gateway-agent/
USER node
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9105/healthz', { signal: AbortSignal.timeout(4000) }).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/usr/local/lib/gateway-agent.cjs"]

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production \
    SVC_DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY LICENSE ./
# A named volume gets the owner of this folder.
RUN mkdir /data && chown node:node /data && chmod 700 /data
USER node
VOLUME /data
# REST, agents.
EXPOSE 8081 8443
# Checks liveness, not readiness: an instance that is catching up must not be restarted. With REST over TLS, replace it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "const port = (process.env.SVC_HTTP_LISTEN_ADDR ?? ':8081').split(':').at(-1); fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(4000) }).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# No npm and no shell in between, so that signals reach the service.
ENTRYPOINT ["node", "--enable-source-maps", "dist/scripts/gateway-control.js"]
