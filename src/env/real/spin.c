#include "env/real/spin.h"

void spin_init(struct spin *spin)
{
    *spin = (struct spin){.budget = SPIN_MIN_NS * 2, .left = SPIN_WINDOW};
    two_ways_init(&spin->ways);
}

static void window_begin(struct spin *spin, uint64_t frames)
{
    spin->left = SPIN_WINDOW;
    spin->took = 0;
    spin->frames = frames;
    spin->cooldown = 0;
    spin->gaps = 0;
    if (spin->budget < 2 * SPIN_MIN_NS)
        spin->budget = 2 * SPIN_MIN_NS;
}

static void window_end(struct spin *spin, uint64_t frames)
{
    uint64_t got = frames - spin->frames;
    if (spin->gaps >= SPIN_GAPS)
        two_ways_fail(&spin->ways);
    else
        two_ways_window(&spin->ways, got ? spin->took / got + 1 : 0); /* a lane that is idle sleeps */
    window_begin(spin, frames);
}

void spin_pause(struct spin *spin, uint64_t now)
{
    if (!spin->timing)
        return;
    uint64_t took = now - spin->since;
    spin->took += took < SPIN_LATE ? took : SPIN_LATE;
    spin->timing = false;
}

uint64_t spin_begin(struct spin *spin, uint64_t now, uint64_t frames)
{
    spin_pause(spin, now);
    if (spin->left == 0)
        window_end(spin, frames);
    spin->left--;
    spin->since = now;
    spin->timing = true;
    if (!spin->ways.second || spin->gaps >= SPIN_GAPS)
        return 0;
    if (spin->cooldown && --spin->cooldown)
        return 0;
    return spin->budget;
}

void spin_end(struct spin *spin, bool came, bool descheduled)
{
    spin->gaps += descheduled;
    if (came) {
        spin->budget = 2 * spin->budget < SPIN_MAX_NS ? 2 * spin->budget : SPIN_MAX_NS;
        return;
    }
    spin->budget -= spin->budget / 4;
    if (spin->budget < SPIN_MIN_NS) {
        spin->budget = SPIN_MIN_NS;
        spin->cooldown = SPIN_TRIES;
    }
}
