#!/usr/bin/env node
/** The bin `gateway-control`: runs the service, or with `maintenance` one of its maintenance commands. */
import { argv } from 'node:process';
import { runMaintenance } from './maintenance/commands.js';

if (argv[2] === 'maintenance') await runMaintenance(argv.slice(3));
else await import('../src/main.js');
