import typia from 'typia'
import type { ExtensionRegistry } from './registry-file.js'

/** Checks an index of extensions; unknown fields are left out. */
export const checkRegistry = typia.misc.createValidatePrune<ExtensionRegistry>()
