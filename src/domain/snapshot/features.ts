/**
 * What the agent of a node must be able to run for a rule or a setting, by the names of its hello. Which rule needs which is in
 * the declarations of resources (`compiled.features`). Implements `docs/contract/agent-protocol.md#configuration`,
 * "Features".
 */

/** An agent that names none of these does not say what it can run. */
export const features = [
  'tcp_raw',
  'tcp_sni',
  'tcp_tls',
  'tcp_reality',
  'udp_raw',
  'udp_enc',
  'http',
  'quic_reality',
  'quic_datagram',
  'fake_tcp',
  'l3',
  'multiplex',
] as const;
export type Feature = (typeof features)[number];

/** The features that nodes need, by node id. */
export type Needs = ReadonlyMap<string, ReadonlySet<Feature>>;
