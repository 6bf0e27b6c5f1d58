/** The settings of REALITY: four together, each with an error that names it, and never the private key in one. */
import { expect, test } from 'vitest';
import { readConfig } from '../../src/app/config/config.js';
import { printableConfig } from '../../src/app/config/variables.js';

const key = Buffer.alloc(32, 7).toString('base64url');
const good = {
  SVC_REALITY_PRIVATE_KEY: key,
  SVC_REALITY_SERVER_NAMES: 'www.example.com, Example.com',
  SVC_REALITY_SHORT_IDS: '0123ab,FF',
  SVC_REALITY_TARGET: 'www.example.com:443',
};

test('are read into what the listener needs', () => {
  expect(readConfig(good).agents.reality).toMatchObject({
    serverNames: ['www.example.com', 'example.com'],
    shortIds: ['0123ab', 'ff'],
    target: { host: 'www.example.com', port: 443 },
    maxTimeDiffMs: 60_000,
    allowH2c: false,
  });
  const more = { ...good, SVC_REALITY_MAX_TIME_DIFF_MS: '5000', SVC_REALITY_ALLOW_H2C: 'true' };
  expect(readConfig(more).agents.reality).toMatchObject({ maxTimeDiffMs: 5_000, allowH2c: true });
  expect(readConfig({}).agents.reality).toBeUndefined();
});

test.each(Object.keys(good))('without %s the start is refused', (name) => {
  const start = (): unknown => readConfig({ ...good, [name]: undefined });
  expect(start).toThrow(`${name}: required, because `);
});

test.each([
  ['SVC_REALITY_PRIVATE_KEY', 'short', 'expected 32 bytes in base64url without padding'],
  ['SVC_REALITY_PRIVATE_KEY', `${key}=`, 'expected 32 bytes in base64url without padding'],
  ['SVC_REALITY_SERVER_NAMES', ' , ', 'expected comma-separated host names'],
  ['SVC_REALITY_SERVER_NAMES', 'a b', 'got "a b"'],
  ['SVC_REALITY_SHORT_IDS', 'abc', 'an even number of 2 to 16 hexadecimal digits, got "abc"'],
  ['SVC_REALITY_SHORT_IDS', '0123456789abcdef01', 'an even number of 2 to 16 hexadecimal digits'],
  ['SVC_REALITY_TARGET', 'www.example.com', 'expected host:port'],
  ['SVC_REALITY_MAX_TIME_DIFF_MS', '0', 'expected a whole number from 1000 to 3600000'],
  ['SVC_REALITY_ALLOW_H2C', 'yes', 'expected true or false'],
])('%s=%s is refused: %s', (name, value, expected) => {
  const start = (): unknown => readConfig({ ...good, [name]: value });
  expect(start).toThrow(`${name}: `);
  expect(start).toThrow(expected);
  if (name === 'SVC_REALITY_PRIVATE_KEY') expect(start).not.toThrow(value);
});

test('the private key is masked where the settings are printed', () => {
  const printed = printableConfig(good);
  expect(printed).toContain('SVC_REALITY_PRIVATE_KEY=***');
  expect(printed).toContain('SVC_REALITY_TARGET=www.example.com:443');
  expect(printed).not.toContain(key);
});
