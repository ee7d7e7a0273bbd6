#include "env/real/spin.h"

void spin_init(struct spin *spin)
{
    *spin =
        (struct spin){.budget = SPIN_MIN_NS * 2, .left = SPIN_WINDOW, .stay = 1, .stay_next = SPIN_STAY_MIN};
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

/* A trial has ended, or the better way has failed: stays with this way. */
static void stay_with(struct spin *spin, bool polling)
{
    if (polling != spin->better)
        spin->stay_next = SPIN_STAY_MIN;
    else if (spin->stay_next < SPIN_STAY_MAX)
        spin->stay_next *= 2;
    spin->polls = spin->better = polling;
    spin->stay = spin->stay_next;
}

/* Polling must win, because it takes processor time that others may need. By little, because the other side of a
 * connection gains more once this one polls. */
static bool polling_pays(const struct spin *spin)
{
    return spin->cost[true] && spin->cost[true] < spin->cost[false] - spin->cost[false] / 32;
}

static void window_end(struct spin *spin, uint64_t frames)
{
    uint64_t got = frames - spin->frames;
    bool trial = spin->polls != spin->better;
    if (spin->gaps >= SPIN_GAPS) {
        spin->cost[true] = 0;
        stay_with(spin, false);
    } else if (!got) { /* nothing is known of either way: a lane that is idle sleeps */
        spin->polls = spin->better = false;
        spin->stay = 1;
    } else {
        uint64_t cost = spin->took / got + 1, before = spin->cost[spin->polls];
        spin->cost[spin->polls] = trial || !before ? cost : (3 * before + cost) / 4;
        if (trial)
            stay_with(spin, polling_pays(spin));
        else if (--spin->stay == 0)
            spin->polls = !spin->better;
    }
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
    if (!spin->polls || spin->gaps >= SPIN_GAPS)
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
