import typia from 'typia'
import type { ExtensionManifest } from './manifest.js'

/** Checks the value of a manifest file; unknown keys are errors. */
export const checkManifest = typia.createValidateEquals<ExtensionManifest>()

/** Checks a manifest that a host made for a newer one gives, of which only the identity is read. */
export const checkIdentity = typia.misc.createValidatePrune<Pick<ExtensionManifest, IdentityKey>>()

type IdentityKey = 'publisher' | 'name' | 'version' | 'engines' | 'server'
