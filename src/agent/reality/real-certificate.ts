/**
 * Whether a chain of certificates is one that browsers accept for a name: then the target answered instead of the service.
 * Only for the words of an error and for how the agent leaves; nothing is entrusted to such a server.
 */
import { X509Certificate } from 'node:crypto';
import { rootCertificates } from 'node:tls';

let parsedRoots: readonly X509Certificate[] | undefined;
const knownRoots = (): readonly X509Certificate[] =>
  (parsedRoots ??= rootCertificates.map((pem) => new X509Certificate(pem)));

/**
 * @param chain DER, the server's own first
 * @param now milliseconds since the Unix epoch
 * @param roots authorities; by default those that Node knows
 */
export function isTrusted(
  chain: readonly Buffer[],
  serverName: string,
  now: number,
  roots: () => readonly X509Certificate[] = knownRoots,
): boolean {
  const certificates = parse(chain);
  let current = certificates?.[0];
  if (certificates === undefined || current?.checkHost(serverName) === undefined) return false;
  const isIssuer = (one: X509Certificate, of: X509Certificate): boolean =>
    one.ca && of.checkIssued(one) && of.verify(one.publicKey);
  // Each step goes up by one, so no chain takes more steps than it has certificates.
  for (let step = 0; step <= certificates.length; step += 1) {
    const below: X509Certificate = current;
    if (Date.parse(below.validFrom) > now || Date.parse(below.validTo) < now) return false;
    if (roots().some((root) => isIssuer(root, below))) return true;
    const above = certificates.find((one) => one !== below && isIssuer(one, below));
    if (above === undefined) return false;
    current = above;
  }
  return false;
}

function parse(chain: readonly Buffer[]): readonly X509Certificate[] | undefined {
  try {
    return chain.map((der) => new X509Certificate(der));
  } catch {
    return undefined;
  }
}
