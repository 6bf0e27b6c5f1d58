/** The options of the simulator. */
import { describe, expect, it } from 'vitest';
import { readScenario } from '../../scripts/simulate/scenario.js';

describe('the options of the simulator', () => {
  it('have defaults', () => {
    expect(readScenario([])).toMatchObject({ agents: 1_000, processes: 2, service: undefined, storms: [], hops: [] });
  });

  it('describe what agents and operators do', () => {
    const text =
      '--agents 10000 --table 20x5 --heartbeat 10 --storm 20 --storm 5 --rejects 0.2 --slow 0.8 --churn 2.5 --hops enc,reality';
    expect(readScenario(text.split(' '))).toMatchObject({
      agents: 10_000,
      table: { listeners: 20, routesPerListener: 5 },
      heartbeatSeconds: 10,
      storms: [5, 20],
      rejecting: 0.2,
      slow: 0.8,
      churn: 2.5,
      hops: ['enc', 'reality'],
    });
    expect(readScenario(['--url', 'http://gateway.example:8081']).service).toEqual({
      url: 'http://gateway.example:8081',
      endpoint: { host: 'gateway.example', port: 8443 },
      user: 'admin',
    });
  });

  it.each([
    ['--agents 0', '--agents: expected a whole number from 1 to 20000, got "0"'],
    ['--agents 20001', '--agents: expected a whole number from 1 to 20000, got "20001"'],
    ['--agents 1.5', '--agents: expected a whole number'],
    ['--agents many', '--agents: expected a whole number'],
    ['--agents', '--agents needs a value'],
    ['--processes 17', '--processes: expected a whole number from 1 to 16'],
    ['--duration 0', '--duration: expected a number from 1 to 86400'],
    ['--heartbeat 0', '--heartbeat: expected a number from 0.1 to 3600'],
    ['--table 20', '--table: expected LxR'],
    ['--changing 0.5', '--changing: expected --table'],
    ['--table 4097x1', '--table: expected LxR with at most 4096 listeners'],
    ['--table 4096x5', '--table: expected LxR with at most 4096 listeners and 16384 routes'],
    ['--changing 1.1', '--changing: expected a number from 0 to 1'],
    ['--churn -1', '--churn: expected a number from 0 to 10000'],
    ['--storm 31', '--storm: expected a number from 0 to 30'],
    ['--edit-one 101', '--edit-one: expected a number from 0 to 100'],
    ['--edit-all 21', '--edit-all: expected a number from 0 to 20'],
    ['--rejects 2', '--rejects: expected a number from 0 to 1'],
    ['--rejects 0.6 --slow 0.6', '--slow: expected at most 1 together with --rejects'],
    ['--hops reality,quic', '--hops: expected some of tcp, tls, reality, udp, enc, got "reality,quic"'],
    ['--settle 0', '--settle: expected a number from 1 to 3600'],
    ['--report out.pdf', '--report: expected a file that ends with .html or .svg'],
    ['--url ftp://a', '--url: expected http://host:port'],
    ['--url http://a --endpoint a', '--endpoint: expected http://host:port'],
    ['--url http://a --endpoint https://a:1', '--endpoint: expected http://host:port'],
    ['--endpoint http://a:1', '--endpoint: expected only together with --url'],
    ['--user me', '--user: expected only together with --url'],
    ['--speed 3', '--speed is not an option of this command'],
    ['now', '"now" is one argument too many'],
  ])('refuse %s by name', (text, message) => {
    expect(() => readScenario(text.split(' '))).toThrow(message);
  });
});
