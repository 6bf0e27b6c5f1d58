/**
 * `npm run reality:keygen`: generates what REALITY needs on the agent listener, and the endpoint for agents. See
 * `docs/how-to/reality.md`.
 */
import { randomBytes } from 'node:crypto';
import { formatEndpoint } from '../../../src/channel/reality/endpoint.js';
import { parseHostPort } from '../../../src/kernel/host-port.js';
import { generateX25519 } from '../../../src/kernel/crypto/crypto.js';
import { UsageError, exitCodes, parseArguments, say, type ExitCode } from '../command-line.js';

export const usage = `Usage: gateway-control maintenance reality:keygen [--target HOST:PORT] [--endpoint HOST:PORT]

Prints a new key pair and a short id as the variables of the service and of its agents. Nothing is stored: keep the private
key as you keep the master key. --target is the TLS server that strangers see (TLS 1.3, not yours to run); --endpoint is
where agents reach this service.`;

const shortIdBytes = 8;

export async function run(argv: readonly string[]): Promise<ExitCode> {
  const given = parseArguments(argv, [], 0, ['--target', '--endpoint']);
  const read = (option: string, fallback: string) => {
    const text = given.values(option).at(-1) ?? fallback;
    const parsed = parseHostPort(text);
    if (parsed === undefined) throw new UsageError(`${option}: expected host:port, got "${text}"`);
    return { text, ...parsed };
  };
  const target = read('--target', 'www.example.com:443');
  const endpoint = read('--endpoint', 'control.example.com:8443');
  const keys = generateX25519();
  const shortId = randomBytes(shortIdBytes).toString('hex');
  const reality = { publicKey: Buffer.from(keys.publicKey), shortId, serverName: target.host };
  say('# For the service');
  say(`SVC_REALITY_PRIVATE_KEY=${Buffer.from(keys.privateKey).toString('base64url')}`);
  say(`SVC_REALITY_SERVER_NAMES=${target.host}`);
  say(`SVC_REALITY_SHORT_IDS=${shortId}`);
  say(`SVC_REALITY_TARGET=${target.text}`);
  say('# For each agent');
  say(`SVC_CONTROL_ENDPOINT=${formatEndpoint({ ...endpoint, reality })}`);
  return exitCodes.done;
}
