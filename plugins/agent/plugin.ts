import type { Host } from '../../sdk/index.js'
import { agent } from './contract.js'

export const contract = agent
export const activate = (_host: Host): void => {}
