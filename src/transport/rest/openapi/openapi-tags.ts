/** What the OpenAPI document says of each group of routes. */
export const tagDescriptions: { readonly [tag: string]: string } = {
  auth: "Sign-in, the caller's own account, and users.",
  nodes: 'Gateway nodes: definition, PSK, configuration snapshot, commands to the agent, links between nodes.',
  'l4-upstreams': 'Where chains end.',
  credentials: 'Keys and certificates. Private keys go in and never come out.',
  'l4-chains': 'Chains of hops over nodes to a target. They are edited first and deployed then.',
  routes: 'Legacy HTTP routes by host and path prefix. They are live at once.',
  'l3-networks':
    'Networks of tunnels that carry IP packets between nodes. They are live at once where they are enabled.',
  ports: 'What listens on each node: intent, what agents report, and the order in which a shared listener matches.',
  settings: 'Settings of the installation.',
  audit: 'Who did what and when.',
  dashboard: 'Figures about the whole fleet.',
  operation: 'Beside /api and without its envelope: probes, metrics and this document.',
};
