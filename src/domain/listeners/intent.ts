/** The listeners and routes that resources intend on a node. Implements `docs/contract/rest.md#port-management`. */
export const routeSources = ['l4_chain', 'l4_upstream', 'l3_network'] as const;
export const matchKinds = ['reality', 'sni', 'local_key', 'l3_context', 'default'] as const;

export interface IntendedRoute {
  readonly source: (typeof routeSources)[number];
  readonly sourceLabel: string;
  readonly matchKind: (typeof matchKinds)[number];
  readonly matchValue: string;
  /** `""` while no address is known. */
  readonly nextHop: string;
  /** Whether a deployed definition has the same route. */
  readonly deployed: boolean;
}

/** Identifies a listener of a node. */
export interface ListenerKey {
  readonly transport: 'tcp' | 'udp';
  readonly listenAddr: string;
  readonly listenPort: number;
}

export interface IntendedListener<R = IntendedRoute> extends ListenerKey {
  readonly nodeId: string;
  readonly routes: readonly R[];
}
