/** The scenarios of the kit, in the order in which a manually started agent meets them. */
import type { Scenario } from './play.js';
import { badFramesScenario } from './scenarios/bad-frames.js';
import { clockSkew } from './scenarios/clock-skew.js';
import { awayScenarios, bareStatuses, closes } from './scenarios/closes.js';
import { confirmedChanges } from './scenarios/confirmed-changes.js';
import { diagnostics } from './scenarios/diagnostics.js';
import { firstSessionScenario } from './scenarios/first-session.js';
import { edits } from './scenarios/edits.js';
import { fragments } from './scenarios/fragments.js';
import { heartbeats } from './scenarios/heartbeats.js';
import { kinds } from './scenarios/kinds.js';
import { laterService } from './scenarios/later-service.js';
import { lostConnection } from './scenarios/lost-connection.js';
import { relaying } from './scenarios/relaying.js';
import { falseService, refusals } from './scenarios/refusals.js';
import { rejects } from './scenarios/rejects.js';
import { rekey } from './scenarios/rekey.js';
import { slowReader } from './scenarios/slow-reader.js';
import { slowService } from './scenarios/slow-service.js';
import { snapshots } from './scenarios/snapshots.js';
import { stopping } from './scenarios/stopping.js';

export const scenarios: readonly Scenario[] = [
  firstSessionScenario,
  relaying,
  slowReader,
  edits,
  heartbeats,
  diagnostics,
  rekey,
  closes,
  snapshots,
  rejects,
  confirmedChanges,
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
