/** The settings of REALITY are refused, not ignored, as long as agents are served over h2c only. */
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config.js';

test.each(['SVC_REALITY_PRIVATE_KEY', 'SVC_REALITY_SERVER_NAMES', 'SVC_REALITY_SHORT_IDS', 'SVC_REALITY_TARGET'])(
  '%s stops the start, without its value if that is a secret',
  (name) => {
    const start = (): unknown => readConfig({ [name]: 'a-value' });
    expect(start).toThrow(`${name}: `);
    expect(start).toThrow('this release serves agents over h2c only');
    if (name === 'SVC_REALITY_PRIVATE_KEY') expect(start).not.toThrow('a-value');
  },
);
