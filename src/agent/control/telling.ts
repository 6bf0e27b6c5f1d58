/**
 * What the agent tells by itself, on whichever session is live: the outcome of an apply, a heartbeat or metrics between the
 * regular ones, a diagnosis. `session.ts` has the regular intervals.
 */
import type { ConfigApplyReport } from '../../gen/svc/control/v1/config.js';
import type { DiagnosticsReport } from '../../gen/svc/control/v1/diagnostics.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { ClockOffset } from '../diagnosis/diagnose.js';
import type { Gateway } from '../gateway.js';
import type { Session } from './session.js';
import { createSoon } from './soon.js';

/** Extra heartbeats. The service reads two payloads a second, 20 at once, regular ones included. */
const extraHeartbeats = { perSecond: 1, burst: 10 } as const;
// docs/contract/agent-protocol.md#the-reference-agent
const extraMetrics = { perSecond: 1 / 5, burst: 1 } as const;

export interface TellingOptions {
  readonly gateway: Pick<Gateway, 'watch'>;
  /** Answers RUN_DIAGNOSTICS; an abort of the signal ends it early. */
  readonly diagnose: (offset: ClockOffset | undefined, signal: AbortSignal) => Promise<DiagnosticsReport>;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Telling {
  /** From now on, this session is the live one. */
  moveTo(session: Session | undefined, offset?: ClockOffset): void;
  applied(report: ConfigApplyReport): void;
  /** Tells soon what runs. */
  beat(): void;
  hush(): void;
  /** Answers RUN_DIAGNOSTICS. One at a time: a report answers every command that came before it. */
  diagnose(): void;
  close(): Promise<void>;
}

/** @param stopped aborts when the agent stops */
export function createTelling({ gateway, diagnose, clock, logger }: TellingOptions, stopped: AbortSignal): Telling {
  let current: Session | undefined;
  let measured: ClockOffset | undefined;
  let diagnosing: Promise<void> | undefined;
  let diagnosis: DiagnosticsReport | undefined;

  // The next session starts with its own heartbeat.
  const heartbeat = createSoon(extraHeartbeats, clock, () => {
    current?.beat();
    return true;
  });
  const metrics = createSoon(extraMetrics, clock, () => current?.measure() === true);
  gateway.watch({ onUpstreams: metrics.ask, onRoutes: heartbeat.ask });

  const tellDiagnosis = (): void => {
    if (diagnosis !== undefined && current?.diagnosed(diagnosis) === true) diagnosis = undefined;
  };
  const runDiagnosis = async (): Promise<void> => {
    try {
      diagnosis = await diagnose(measured, stopped);
      tellDiagnosis();
    } catch (error) {
      logger.error({ error: errorText(error) }, 'the diagnosis failed');
    }
    diagnosing = undefined;
  };

  return {
    moveTo(session, offset) {
      current = session;
      measured = offset ?? measured;
      metrics.retry();
      tellDiagnosis();
    },
    applied: (report) => current?.report(report),
    beat: heartbeat.ask,
    hush: () => current?.hush(),
    diagnose: () => void (diagnosing ??= runDiagnosis()),
    async close() {
      heartbeat.close();
      metrics.close();
      await diagnosing;
    },
  };
}
