/** The scenarios of the kit, in the order in which a manually started agent meets them. */
import type { Scenario } from './play.js';
import { badFramesScenario } from './scenarios/bad-frames.js';
import { clockSkew } from './scenarios/clock-skew.js';
import { awayScenarios, bareStatuses, closes } from './scenarios/closes.js';
import { firstSessionScenario } from './scenarios/first-session.js';
import { fragments } from './scenarios/fragments.js';
import { heartbeats } from './scenarios/heartbeats.js';
import { kinds } from './scenarios/kinds.js';
import { laterService } from './scenarios/later-service.js';
import { lostConnection } from './scenarios/lost-connection.js';
import { falseService, refusals } from './scenarios/refusals.js';
import { rejects } from './scenarios/rejects.js';
import { rekey } from './scenarios/rekey.js';
import { slowService } from './scenarios/slow-service.js';
import { snapshots } from './scenarios/snapshots.js';
import { stopping } from './scenarios/stopping.js';

export const scenarios: readonly Scenario[] = [
  firstSessionScenario,
  heartbeats,
  rekey,
  closes,
  snapshots,
  rejects,
  laterService,
  fragments,
  slowService,
  kinds,
  lostConnection,
  badFramesScenario,
  bareStatuses,
  stopping,
  refusals,
  falseService,
  clockSkew,
  // These keep the agent away, the longest last.
  ...awayScenarios,
];
