/**
 * The one-shot commands `join` and `identity`, run by a person. Results and failures are sentences on standard error.
 * Implements `docs/contract/joining.md#the-machines-side`.
 */
import { hostname } from 'node:os';
import { agentKeysFrom } from '../channel/noise/control-psk.js';
import { joinKeysFrom } from '../channel/noise/join-token.js';
import { formatEndpoint, readEndpoint } from '../channel/reality/endpoint.js';
import { unreachable } from '../kernel/errors.js';
import { readSecretFile, systemErrorCode } from '../kernel/files.js';
import { askSecret } from './ask-secret.js';
import type { Command } from './command-line.js';
import { stateDirOf, type Environment } from './config.js';
import { exitCodes } from './exit-codes.js';
import { joinMachine } from './joining.js';
import { forgetRequest, identityPath, readIdentity, writeIdentity } from './state-directory.js';

/** How long `join` keeps trying. */
const defaultPatienceMs = 60_000;

const say = (sentence: string): void => void process.stderr.write(`${sentence}\n`);

function wrong(sentence: string): number {
  say(sentence);
  return exitCodes.wrongUse;
}

type Given<K extends Command['kind']> = Extract<Command, { readonly kind: K }>;

/** @returns the exit code @throws StateError */
export async function joinByHand(
  given: Given<'join'>,
  environment: Environment,
  patienceMs = defaultPatienceMs,
): Promise<number> {
  const stateDir = given.stateDir ?? stateDirOf(environment);
  const known = await readIdentity(stateDir);
  if (known !== undefined) {
    await forgetRequest(stateDir);
    say(`Joined already: this machine is node ${known.node_id}, as ${identityPath(stateDir)} says.`);
    return exitCodes.done;
  }
  const endpoint = readEndpoint(given.endpoint ?? environment['SVC_CONTROL_ENDPOINT'] ?? '');
  if (typeof endpoint === 'string') return wrong(`--endpoint: ${endpoint}`);
  const fromEnvironment = environment['SVC_JOIN_TOKEN'] ?? '';
  const token = fromEnvironment === '' ? await askSecret('Join token: ') : fromEnvironment;
  if (token === undefined) return wrong('expected a join token, in SVC_JOIN_TOKEN or typed on a terminal');
  const keys = joinKeysFrom(token);
  if (!keys.ok) return wrong(`SVC_JOIN_TOKEN: ${keys.error}`);
  const joined = await joinMachine({
    token,
    endpoint,
    name: given.name ?? hostname(),
    stateDir,
    patienceMs,
    onRetry: (message, waitMs) => say(`${message}; trying again in ${Math.ceil(waitMs / 1000)} s`),
  });
  switch (joined.kind) {
    case 'joined':
      say(`Joined: this machine is node ${joined.name} (${joined.identity.node_id}).`);
      say('gateway-agent run connects it; so does its unit: systemctl enable --now gateway-agent');
      return exitCodes.done;
    case 'refused':
      say(`Not joined: ${joined.message}`);
      return exitCodes.refused;
    case 'unreached':
      say(`Not joined: ${formatEndpoint(endpoint)} does not answer as the service does: ${joined.message}`);
      return exitCodes.unreached;
    default:
      return unreachable(joined);
  }
}

/** @returns the exit code @throws StateError */
export async function replacePsk(given: Given<'identity'>, environment: Environment): Promise<number> {
  const stateDir = given.stateDir ?? stateDirOf(environment);
  const known = await readIdentity(stateDir);
  if (known === undefined)
    return wrong(`${identityPath(stateDir)}: expected the identity of a machine that has joined`);
  let psk: string;
  try {
    psk = readSecretFile(given.pskFile);
  } catch (error) {
    return wrong(`--psk-file: expected a file that this process can read (${systemErrorCode(error) ?? 'unreadable'})`);
  }
  const keys = agentKeysFrom(psk);
  if (!keys.ok) return wrong(`--psk-file: ${keys.error}`);
  // Writing a candidate twice, or one that the service refuses, does not lose the previous PSK.
  const former = psk === known.control_psk ? known.former_control_psk : known.control_psk;
  await writeIdentity(stateDir, { ...known, control_psk: psk, former_control_psk: former });
  say(`Node ${known.node_id} has the PSK ${keys.value.fingerprint} from now on: systemctl reload gateway-agent`);
  return exitCodes.done;
}
