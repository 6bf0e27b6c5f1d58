/**
 * The routes of the fleet as a file, in four parts: export, plan and apply, applies, sets. The rules are in
 * `domain/fleet-file`. Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import type { RestApp, RestDeps } from '../deps.js';
import { applyRoutes } from './applies.js';
import { exportRoute } from './export.js';
import { planAndApplyRoutes } from './plan-and-apply.js';
import type { Sections } from './sections.js';
import { setRoutes } from './sets.js';

export function fleetFileRoutes(app: RestApp, deps: RestDeps, sections: Sections): void {
  exportRoute(app, deps, sections);
  planAndApplyRoutes(app, deps, sections);
  applyRoutes(app, deps, sections);
  setRoutes(app, deps, sections);
}
