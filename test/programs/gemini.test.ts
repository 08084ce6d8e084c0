import { gate } from './gate.js'

gate('gemini')
