import { needle } from "./a.ts";
