/** The list of rollout policies. */
import { columnsOf } from '../shared/ui/data-table.js';
import { listPage, nameColumn, updatedColumn } from '../shared/ui/list-page.js';
import { rolloutPolicies, type RolloutPolicy } from './rollout-policies.js';
import { text } from './rollout-policies.text.js';
import { wavesInWords } from './waves.js';

const columns = columnsOf<RolloutPolicy>([
  nameColumn('rollout_policy'),
  [text.waves, wavesInWords],
  [text.bake, (row) => text.seconds(row.bake_secs), { numeric: true, minor: true }],
  [text.onFailure, (row) => text.reactions[row.on_failure], { minor: true }],
  updatedColumn,
]);

export const RolloutPoliciesPage = listPage({ of: rolloutPolicies, text, columns });
