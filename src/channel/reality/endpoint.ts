/**
 * The address at which an agent reaches its service: `http://host:port`, or `reality://host:port?pbk=…&sid=…&sni=…`
 * (`docs/contract/agent-protocol.md#the-listener`).
 */
import { isServerName, isShortId, readKey } from './text-forms.js';
import { formatHostPort, parseHostPort, type HostPort } from '../../kernel/host-port.js';

/** The parameters that let an agent in through REALITY. */
export interface RealityAccess {
  /** X25519 public key of the service's listener, 32 bytes. */
  readonly publicKey: Buffer;
  /** Hexadecimal. */
  readonly shortId: string;
  readonly serverName: string;
}

export interface ControlEndpoint extends HostPort {
  /** Undefined: h2c in the clear. */
  readonly reality?: RealityAccess | undefined;
}

/** Returns the endpoint, or a sentence that says what was expected. */
export function readEndpoint(text: string): ControlEndpoint | string {
  const [, scheme, address = '', query = ''] = /^(http|reality):\/\/([^/?#@]+)\/?(?:\?([^#]*))?$/.exec(text) ?? [];
  const hostPort = parseHostPort(address);
  if (scheme === undefined || hostPort === undefined || (scheme === 'http' && query !== ''))
    return 'expected http://host:port or reality://host:port?pbk=…&sid=…&sni=…, with an IPv6 host in brackets';
  return scheme === 'http' ? hostPort : withAccess(hostPort, new URLSearchParams(query));
}

function withAccess(hostPort: HostPort, query: URLSearchParams): ControlEndpoint | string {
  const publicKey = readKey(query.get('pbk') ?? '');
  if (publicKey === undefined)
    return 'expected pbk to be 32 bytes in base64url without padding: the public key that reality:keygen printed';
  const shortId = query.get('sid') ?? '';
  if (!isShortId(shortId)) return 'expected sid to be a short id of 2 to 16 hexadecimal digits';
  const serverName = query.get('sni') ?? '';
  if (!isServerName(serverName)) return 'expected sni to be a name from SVC_REALITY_SERVER_NAMES';
  return { ...hostPort, reality: { publicKey, shortId, serverName } };
}

/** The text of an endpoint, for `SVC_CONTROL_ENDPOINT`. */
export function formatEndpoint(endpoint: ControlEndpoint): string {
  const { reality } = endpoint;
  if (reality === undefined) return `http://${formatHostPort(endpoint)}`;
  const query = new URLSearchParams({
    pbk: reality.publicKey.toString('base64url'),
    sid: reality.shortId,
    sni: reality.serverName,
  });
  return `reality://${formatHostPort(endpoint)}?${query.toString()}`;
}
