import { gate } from './gate.js'

gate('claude')
