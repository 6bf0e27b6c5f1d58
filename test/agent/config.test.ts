/** The agent's environment: defaults, and how wrong values are reported. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AgentConfigError, readAgentConfig } from '../../src/agent/config.js';
import { formatEndpoint } from '../../src/channel/reality/endpoint.js';
import { encodeControlPsk } from '../../src/channel/noise/control-psk.js';

const psk = encodeControlPsk({ secret: randomBytes(32), servicePublic: randomBytes(32) });
const pbk = Buffer.alloc(32, 9).toString('base64url');
const good = { SVC_AGENT_ID: 'node-1', SVC_CONTROL_ENDPOINT: 'http://gateway.example:8443', SVC_CONTROL_PSK: psk };

function problemOf(change: Record<string, string | undefined>): string {
  try {
    readAgentConfig({ ...good, ...change });
  } catch (error) {
    if (error instanceof AgentConfigError) return error.message;
    throw error;
  }
  return 'accepted';
}

describe('the environment of the agent', () => {
  it('requires three variables and has defaults for the others', () => {
    expect(readAgentConfig(good)).toMatchObject({
      nodeId: 'node-1',
      endpoint: { host: 'gateway.example', port: 8443 },
      rekeyIntervalSeconds: 21_600,
      rejectUnsupported: true,
      logLevel: 'info',
    });
    expect(readAgentConfig({ ...good, SVC_CONTROL_ENDPOINT: 'http://[2001:db8::1]:1/' }).endpoint).toEqual({
      host: '2001:db8::1',
      port: 1,
    });
    const reality = `reality://[2001:db8::1]:8443?pbk=${pbk}&sid=0123ab&sni=www.example.com`;
    const { endpoint } = readAgentConfig({ ...good, SVC_CONTROL_ENDPOINT: reality });
    expect(endpoint).toEqual({
      host: '2001:db8::1',
      port: 8443,
      reality: { publicKey: Buffer.alloc(32, 9), shortId: '0123ab', serverName: 'www.example.com' },
    });
    expect(formatEndpoint(endpoint)).toBe(reality);
    expect(
      readAgentConfig({ ...good, SVC_AGENT_REJECT_UNSUPPORTED: 'false', SVC_CONTROL_REKEY_INTERVAL_SECS: '60' }),
    ).toMatchObject({
      rejectUnsupported: false,
      rekeyIntervalSeconds: 60,
    });
  });

  it('takes an empty variable for one that is not set, which orchestrators pass for a missing value', () => {
    const empty = ['SVC_CONTROL_REKEY_INTERVAL_SECS', 'SVC_AGENT_REJECT_UNSUPPORTED', 'SVC_AGENT_METRICS_ADDR'];
    const environment = Object.fromEntries([...empty, 'SVC_LOG_LEVEL'].map((name) => [name, '']));
    expect(readAgentConfig({ ...good, ...environment })).toEqual(readAgentConfig(good));
    expect(problemOf({ SVC_CONTROL_ENDPOINT: '' })).toMatch(/^SVC_CONTROL_ENDPOINT: required/);
  });

  it('takes the PSK from a file, without its final line break', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'agent-psk-')), 'psk');
    writeFileSync(file, `${good.SVC_CONTROL_PSK}\n`);
    const { keys } = readAgentConfig({ ...good, SVC_CONTROL_PSK: '', SVC_CONTROL_PSK_FILE: file });
    expect(keys.fingerprint).toBe(readAgentConfig(good).keys.fingerprint);
    expect(problemOf({ SVC_CONTROL_PSK_FILE: file })).toMatch(
      /^SVC_CONTROL_PSK_FILE: expected this or SVC_CONTROL_PSK, got both/,
    );
    const none = { SVC_CONTROL_PSK: undefined, SVC_CONTROL_PSK_FILE: `${file}.none` };
    expect(problemOf(none)).toMatch(/^SVC_CONTROL_PSK_FILE: expected a file .* \(ENOENT\)$/);
    rmSync(dirname(file), { recursive: true });
  });

  it('takes an address to tell of itself, on every address when it is a port alone', () => {
    expect(readAgentConfig(good).metrics).toBeUndefined();
    const at = (SVC_AGENT_METRICS_ADDR: string) => readAgentConfig({ ...good, SVC_AGENT_METRICS_ADDR }).metrics;
    expect(at('127.0.0.1:9100')).toEqual({ host: '127.0.0.1', port: 9100 });
    expect(at(':9100')).toEqual({ host: '0.0.0.0', port: 9100 });
    expect(problemOf({ SVC_AGENT_METRICS_ADDR: 'x' })).toMatch(/^SVC_AGENT_METRICS_ADDR: expected host:port/);
  });

  it.each([
    [{ SVC_AGENT_ID: undefined }, /^SVC_AGENT_ID: required/],
    [{ SVC_AGENT_ID: 'a b' }, /^SVC_AGENT_ID: expected .*"a b"/],
    [{ SVC_CONTROL_ENDPOINT: undefined }, /^SVC_CONTROL_ENDPOINT: required/],
    [{ SVC_CONTROL_ENDPOINT: 'https://a:1' }, /^SVC_CONTROL_ENDPOINT: expected http:\/\/host:port/],
    [{ SVC_CONTROL_ENDPOINT: 'http://a' }, /^SVC_CONTROL_ENDPOINT: expected http:\/\/host:port/],
    [{ SVC_CONTROL_ENDPOINT: 'http://a:70000' }, /^SVC_CONTROL_ENDPOINT: expected/],
    [{ SVC_CONTROL_ENDPOINT: 'http://a:1?pbk=x' }, /^SVC_CONTROL_ENDPOINT: expected http:\/\/host:port/],
    [
      { SVC_CONTROL_ENDPOINT: 'reality://a:1?pbk=x&sid=ab&sni=z' },
      /^SVC_CONTROL_ENDPOINT: expected pbk to be 32 bytes/,
    ],
    [{ SVC_CONTROL_ENDPOINT: `reality://a:1?pbk=${pbk}&sid=abc&sni=z` }, /^SVC_CONTROL_ENDPOINT: expected sid to be/],
    [{ SVC_CONTROL_ENDPOINT: `reality://a:1?pbk=${pbk}&sid=ab&sni=a b` }, /^SVC_CONTROL_ENDPOINT: expected sni to be/],
    [{ SVC_CONTROL_PSK: undefined }, /^SVC_CONTROL_PSK: required/],
    [{ SVC_CONTROL_REKEY_INTERVAL_SECS: '9' }, /^SVC_CONTROL_REKEY_INTERVAL_SECS: expected at least 10 seconds/],
    [{ SVC_CONTROL_REKEY_INTERVAL_SECS: '1.5' }, /^SVC_CONTROL_REKEY_INTERVAL_SECS: expected a whole number/],
    [{ SVC_AGENT_REJECT_UNSUPPORTED: 'yes' }, /^SVC_AGENT_REJECT_UNSUPPORTED: expected true or false/],
  ])('with %o is refused with an error that names the variable', (change, expected) => {
    expect(problemOf(change)).toMatch(expected);
  });

  it('is refused with all wrong variables at once, and without the PSK', () => {
    const truncated = psk.slice(0, -2);
    const problem = problemOf({ SVC_AGENT_ID: '', SVC_CONTROL_PSK: truncated, SVC_CONTROL_ENDPOINT: 'x' });
    for (const name of ['SVC_AGENT_ID', 'SVC_CONTROL_PSK', 'SVC_CONTROL_ENDPOINT']) expect(problem).toContain(name);
    expect(problem).not.toContain(truncated.slice(8, 30));
  });
});
