/** Imports modules anew over one of the two cryptography libraries, so that a suite can run against both. */
import { vi } from 'vitest';

export const cryptoLibraries = ['sodium-native', 'node:crypto'] as const;

/**
 * Such a suite is listed under `alone` in `vitest.config.ts`, because it replaces modules.
 * @param load imports what is tested, which the file does not import otherwise
 */
export async function overLibrary<T>(library: (typeof cryptoLibraries)[number], load: () => Promise<T>): Promise<T> {
  vi.resetModules();
  if (library === 'node:crypto') {
    vi.doMock('../../src/kernel/crypto/sodium.js', () => ({
      loadSodium() {
        throw new Error('refused by a test');
      },
    }));
  }
  try {
    const { cryptoLibrary } = await import('../../src/kernel/crypto/crypto.js');
    if (cryptoLibrary.name !== library) throw new Error(`${cryptoLibrary.name} was chosen: ${cryptoLibrary.why}`);
    return await load();
  } finally {
    vi.doUnmock('../../src/kernel/crypto/sodium.js');
  }
}
