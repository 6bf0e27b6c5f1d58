/**
 * The listeners and routes that a resource intends on a node, as types. The port table is made of them.
 * Implements `docs/contract/rest.md#port-management`.
 */

export interface IntendedRoute {
  readonly source: 'l4_chain' | 'l4_upstream' | 'l3_network';
  readonly sourceLabel: string;
  readonly matchKind: 'reality' | 'sni' | 'local_key' | 'l3_context' | 'default';
  readonly matchValue: string;
  /** `""` while no address is known. */
  readonly nextHop: string;
  readonly resourceId: string;
  /** Whether a deployed definition has the same route. */
  readonly deployed: boolean;
}

export interface IntendedListener {
  readonly nodeId: string;
  readonly transport: 'tcp' | 'udp';
  readonly listenAddr: string;
  readonly listenPort: number;
  readonly routes: readonly IntendedRoute[];
}
