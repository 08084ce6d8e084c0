import type { Host } from '../../sdk/index.js'
import { system } from './contract.js'

export const contract = system
export const activate = (_host: Host): void => {}
