/** A listener as one word, such as `tcp 0.0.0.0:443`. */
interface Listener {
  readonly transport: string;
  readonly listenAddr: string;
  readonly listenPort: number;
}

export const listenerText = ({ transport, listenAddr, listenPort }: Listener): string =>
  `${transport} ${listenAddr.includes(':') ? `[${listenAddr}]` : listenAddr}:${listenPort}`;
