/** Runs the service in this process on an empty folder and free ports, for scripts that query it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApp } from '../src/app/app.js';
import { readConfig } from '../src/app/config/config.js';
import { handleUncaught } from '../src/app/uncaught.js';
import { silentLogger } from '../src/kernel/logger.js';

/** Runs `ask` with the address of REST, then stops the service and removes its folder. */
export async function onEmptyFolder<T>(ask: (url: string) => T | Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-empty-'));
  const here = '127.0.0.1:0';
  try {
    const config = readConfig({ SVC_DATA_DIR: folder, SVC_HTTP_LISTEN_ADDR: here, SVC_REALITY_LISTEN_ADDR: here });
    const fail = (sentence: string): never => {
      throw new Error(sentence);
    };
    const logger = { ...silentLogger, fatal: () => undefined };
    const app = await startApp(
      config,
      silentLogger,
      fail,
      handleUncaught(logger, () => undefined),
    );
    try {
      return await ask(app.url);
    } finally {
      await app.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
