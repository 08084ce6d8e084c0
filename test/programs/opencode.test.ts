import { gate } from './gate.js'

gate('opencode')
