/**
 * The arguments of `gateway-agent`. None is ever a secret: `ps` and the history of a shell would keep it. Implements
 * `docs/contract/joining.md#the-machines-side`.
 */
import { realpathSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { agentUnit } from '../kernel/units.js';
import { versionLine } from '../kernel/version.js';
import { agentName } from './agent.js';

export type Command =
  | { readonly kind: 'print'; readonly text: string }
  | { readonly kind: 'run' }
  | {
      readonly kind: 'join';
      readonly endpoint: string | undefined;
      readonly name: string | undefined;
      readonly stateDir: string | undefined;
    }
  | { readonly kind: 'identity'; readonly pskFile: string; readonly stateDir: string | undefined }
  /** A sentence. */
  | { readonly kind: 'wrong'; readonly message: string };

const usage = `Usage: gateway-agent [run]
       gateway-agent join --endpoint ENDPOINT [--name NAME] [--state-dir DIR]
       gateway-agent identity --psk-file FILE [--state-dir DIR]
       gateway-agent --help | --version | --print-unit

The reference agent of a node.

  run        runs it; with SVC_JOIN_TOKEN, SVC_CONTROL_ENDPOINT and no identity, this machine joins first
  join       makes this machine a node with a join token, from SVC_JOIN_TOKEN or asked for on the terminal, and keeps who it
             is in identity.json of the state directory
  identity   puts a control PSK that was issued anew into that file

  SVC_AGENT_STATE_DIR              the state directory; default /var/lib/gateway-agent
  SVC_JOIN_TOKEN                   a join token
  SVC_CONTROL_ENDPOINT             http://host:port or reality://host:port?pbk=…&sid=…&sni=…; beats identity.json
  SVC_AGENT_ID, SVC_CONTROL_PSK    the node's id and control PSK, instead of identity.json; SVC_CONTROL_PSK_FILE is a file
                                   with the PSK
  SVC_CONTROL_REKEY_INTERVAL_SECS  how old the keys of a session may get
  SVC_AGENT_REJECT_UNSUPPORTED     false: run what it can of a snapshot, and report the rest
  SVC_AGENT_METRICS_ADDR           host:port for /healthz and /metrics
  SVC_LOG_LEVEL                    debug, info, warn or error

--print-unit prints the systemd unit that runs this file.
Exit codes: 0 done, 1 internal failure, 2 wrong arguments or environment, 3 the service refuses to let this machine join, 4 the
service was not reached, 5 the state directory cannot be used.
`;

/** Reads the arguments of the program. */
export function readCommandLine(args: readonly string[]): Command {
  const secret = args.find((argument) => /svc(join|psk)1_/.test(argument));
  if (secret !== undefined) {
    const instead = secret.includes('svcjoin1_') ? 'in SVC_JOIN_TOKEN, or typed when it is asked for' : 'in a file';
    const message = `a secret is not taken as an argument, which ps and the shell's history show; expected it ${instead}`;
    return { kind: 'wrong', message };
  }
  if (args.includes('--help')) return { kind: 'print', text: usage };
  const [name = 'run', ...rest] = args;
  switch (name) {
    case '--version':
      return { kind: 'print', text: `${versionLine(agentName)}\n` };
    case '--print-unit':
      return { kind: 'print', text: agentUnit(process.execPath, realpathSync(process.argv[1] ?? '')) };
    case 'run':
      return withOptions(rest, [], () => ({ kind: 'run' }));
    case 'join':
      return withOptions(rest, ['endpoint', 'name', 'state-dir'], (given) => ({
        kind: 'join',
        endpoint: given('endpoint'),
        name: given('name'),
        stateDir: given('state-dir'),
      }));
    case 'identity':
      return withOptions(rest, ['psk-file', 'state-dir'], (given) => {
        const pskFile = given('psk-file');
        if (pskFile === undefined) return { kind: 'wrong', message: 'identity: expected --psk-file FILE' };
        return { kind: 'identity', pskFile, stateDir: given('state-dir') };
      });
    default:
      return { kind: 'wrong', message: `${name} is not one of its arguments` };
  }
}

function withOptions(
  args: readonly string[],
  names: readonly string[],
  command: (given: (name: string) => string | undefined) => Command,
): Command {
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]));
  try {
    const { values } = parseArgs({ args: [...args], options, allowPositionals: false });
    return command((name) => values[name]);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { kind: 'wrong', message: error.message.split('. ')[0] ?? '' };
  }
}
