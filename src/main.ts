/**
 * The program: reads the environment, starts the app, has it read its certificate again on SIGHUP, and stops it on
 * SIGTERM and SIGINT. A start that fails ends with one sentence on standard error and exit code 1, and so does a service
 * whose stores are no longer the ones that it opened.
 */
import { realpathSync } from 'node:fs';
import { startApp } from './app/app.js';
import { readConfig } from './app/config/config.js';
import { ConfigError, unknownVariables } from './app/config/variables.js';
import { printableConfig, usage } from './app/config/shown.js';
import { logCryptoLibrary } from './kernel/crypto/crypto.js';
import { errorText } from './kernel/errors.js';
import { serviceUnit } from './kernel/units.js';
import { build, versionLine } from './kernel/version.js';
import { createServiceLog } from './instance/service-log.js';
import { StartError } from './app/installation/installation.js';
import { handleUncaught, logWarnings } from './app/uncaught.js';
import { warnOfExposure } from './app/exposure.js';

function fail(sentence: string): never {
  process.stderr.write(`${sentence}\n`);
  process.exit(1);
}

/** What an argument asks for, as text; undefined to start the service. */
function answerTo(args: readonly string[]): string | undefined {
  switch (args[0]) {
    case undefined:
      return undefined;
    case '--help':
      return usage(build);
    case '--version':
      return versionLine('gateway-control');
    case '--print-config':
      return printableConfig(process.env);
    case '--print-unit':
      return serviceUnit(process.execPath, realpathSync(process.argv[1] ?? '')).trimEnd();
    default:
      process.stderr.write(
        `${args[0]}: unknown argument; expected --help, --version, --print-config, --print-unit or none\n`,
      );
      process.exit(2);
  }
}

async function main(): Promise<void> {
  const answer = answerTo(process.argv.slice(2));
  if (answer !== undefined) {
    process.stdout.write(`${answer}\n`);
    return;
  }
  const config = readConfig(process.env);
  const logger = createServiceLog(config.logLevel);
  for (const name of unknownVariables(process.env))
    logger.warn({ name }, 'a variable of the environment is no setting');
  warnOfExposure(config, logger);
  logWarnings(logger);
  logCryptoLibrary(logger);
  const uncaught = handleUncaught(logger, () => process.exit(1));
  const starting = startApp(config, logger, fail, uncaught);
  // With any settings, and at any stage of the start, SIGHUP without a listener would end the process.
  process.on('SIGHUP', () => void starting.then(({ reload }) => reload()).catch(() => undefined));
  const { close } = await starting;
  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) return;
    stopping = true;
    logger.info({ signal }, 'stopping: agents are drained, accepted requests are finished');
    close().then(
      () => process.exit(0),
      (error: unknown) => fail(`The service did not stop cleanly: ${errorText(error)}`),
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

main().catch((error: unknown) => {
  if (error instanceof ConfigError) fail(`The configuration cannot be used:\n${error.message}`);
  if (error instanceof StartError) fail(error.message);
  fail(`The service could not start: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
});
