/** The fields of the API as people call them. A field without a word here shows its own name, without underscores. Pure. */

/** By the last part of a path. */
const words: Readonly<Record<string, string>> = {
  listen_addr: 'listen address',
  listen_port: 'port',
  listenPort: 'port',
  node_id: 'node',
  upstream_id: 'upstream',
  credential_id: 'credential',
  x25519_credential_id: 'key',
  dial_addr: 'dial address',
  outer: 'transport',
  tls: 'TLS',
  spki_pins_sha256: 'key pins',
  health_check_interval_ms: 'health check interval (ms)',
  heartbeat_interval_secs: 'heartbeat interval (s)',
  metrics_interval_secs: 'metrics interval (s)',
  offline_after_secs: 'offline after (s)',
  multiplex: 'multiplexing',
  rollout_policy: 'rollout policy of changes',
  upgrade_rollout_policy: 'rollout policy of upgrades',
  bake_secs: 'watch of each wave (s)',
  apply_timeout_secs: 'time to apply (s)',
  priorityOrder: 'order of protocols',
  managed_by: 'managed by',
  cert_pem: 'certificate',
  private_key: 'private key',
  private_key_pem: 'private key',
  psk_fingerprint: 'PSK',
  group_secs: 'seconds gathered',
};

/** Lists whose places are counted from one. */
const places: Readonly<Record<string, string>> = {
  hops: 'hop',
  members: 'member',
  tunnels: 'tunnel',
  routes: 'route',
  nodes: 'node',
  waves: 'wave',
  rules: 'rule',
};

const wordOf = (name: string): string => words[name] ?? name.replaceAll('_', ' ');

/** `port of hop 1` for `hops[0].listen_port`; `server name of TLS` for `tls.server_name`; `label zone` for `labels.zone` */
export function fieldWords(path: string): string {
  // The key of a label may have dots.
  if (path.startsWith('labels.')) return path.replace('labels.', 'label ');
  const parts = path.split('.').flatMap((part) => {
    const [, name = part, place] = /^([^[]*)\[(\d+)\]$/.exec(part) ?? [];
    return place === undefined ? wordOf(name) : `${places[name] ?? wordOf(name)} ${Number(place) + 1}`;
  });
  return parts.toReversed().join(' of ');
}
