import type { Examples } from '../../sdk/contract.js'
import type { ConsoleCalls } from './contract.js'

/** One use of each call. */
export const examples = (): Examples<ConsoleCalls> => ({
  'GET /': { output: '<!doctype html>\n<html lang="en"><head><title>Sandbox</title></head></html>' },
  'GET /console/{file}': { input: { file: 'main-K3VQ7AHD.js' }, output: 'const state = new Map()\n' },
})
