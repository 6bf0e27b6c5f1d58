/** `SVC_AGENT_PROXY_FROM`: which balancers the agent listener believes. */
import { expect, test } from 'vitest';
import { readConfig } from '../../src/app/config/config.js';
import { printableConfig } from '../../src/app/config/variables.js';

test('no balancer is believed unless it is set, and --print-config shows what is', () => {
  expect(readConfig({}).agents.proxyFrom).toEqual([]);
  const env = { SVC_AGENT_PROXY_FROM: '10.0.0.0/8, 2001:db8::1' };
  expect(readConfig(env).agents.proxyFrom).toEqual(['10.0.0.0/8', '2001:db8::1']);
  expect(printableConfig(env)).toContain('SVC_AGENT_PROXY_FROM=10.0.0.0/8, 2001:db8::1');
});

test.each(['10.0.0.0/33', 'balancer', '10.0.0.0/8/8', '2001:db8::/129', '10.0.0.0/', 'fe80::1%eth0', '10.0.0.0/-1'])(
  '%s is refused by the name of the setting',
  (value) => {
    expect(() => readConfig({ SVC_AGENT_PROXY_FROM: value })).toThrow(
      `SVC_AGENT_PROXY_FROM: got "${value}": expected comma-separated CIDRs, got "${value}"`,
    );
  },
);
