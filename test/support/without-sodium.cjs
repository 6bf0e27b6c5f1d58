/** Preloaded by a process: sodium-native cannot be found in it, as on a platform without the addon. */
const Module = require('node:module');

const resolve = Module._resolveFilename;
Module._resolveFilename = function (request, ...rest) {
  if (request === 'sodium-native') throw new Error(`Cannot find module '${request}'`);
  return resolve.call(this, request, ...rest);
};
