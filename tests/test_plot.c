/* Where things stand in the tool's pictures: ticks that people would choose, and names that do not lie on each other or
 * on a line. That a picture is one is tested through the tool, in tests/cli. */
#include "../cli/plot/plot_labels.h"
#include "../cli/plot/plot_scale.h"

#include <math.h>

#include "check.h"

static void test_ticks(void) {
    static const struct {
        double whole, step;
    } cases[] = {{103, 20}, {5040, 1000}, {79, 20}, {6, 1}, {0.7, 0.2}, {14, 2.5}, {1e-9, 2e-10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double step = nice_step(cases[i].whole, 6);
        CHECK(fabs(step / cases[i].step - 1) < 1e-12, "%g: expected steps of %g, got %g", cases[i].whole, cases[i].step,
              step);
    }
    CHECK(nice_step(0, 6) == 1, "expected a step where there is nothing");
    CHECK(nice_power_step(10, 28, 6) == 4, "expected 2^10, 2^14, ...");
    CHECK(nice_power_step(10, 10, 6) == 1, "expected a step where there is one size");
    const scale scale = {10, 28, 100, 280}, point = {5, 5, 100, 280};
    CHECK(scale_place(&scale, 19) == 190, "expected the middle");
    CHECK(scale_place(&point, 5) == 190, "expected the middle, got %g", scale_place(&point, 5));
}

/* In order, apart, within the borders, and where they want to be if nothing is in the way. */
static void test_pushing(void) {
    uint64_t random = 1;
    for (int trial = 0; trial < 2000; trial++) {
        label labels[8];
        const int count = 1 + trial % 8;
        for (int i = 0; i < count; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            labels[i] = (label){(double)(random >> 40) * 0x1p-24 * (trial % 3 == 0 ? 1 : 200), 0, i};
        }
        push_apart(labels, count, 15, 0, 200);
        for (int i = 0; i < count; i++) {
            CHECK(labels[i].place >= -1e-9 && labels[i].place <= 200 + 1e-9, "a label at %g", labels[i].place);
            CHECK(i == 0 || labels[i].place - labels[i - 1].place >= 15 - 1e-9, "labels at %g and %g",
                  i ? labels[i - 1].place : 0, labels[i].place);
            CHECK(i == 0 || labels[i].wanted >= labels[i - 1].wanted, "labels out of order");
        }
    }
    label alone[] = {{20, 0, 0}, {120, 0, 1}}, together[] = {{100, 0, 0}, {100, 0, 1}};
    push_apart(alone, 2, 15, 0, 200);
    push_apart(together, 2, 15, 0, 200);
    CHECK(alone[0].place == 20 && alone[1].place == 120, "expected labels that are apart to stay");
    CHECK(together[0].place == 92.5 && together[1].place == 107.5, "expected both to move alike, got %g and %g",
          together[0].place, together[1].place);
}

static void test_room(void) {
    const double x[] = {0, 100, 200}, high[] = {50, 50, 50}, low[] = {70, 70, 70};
    const line lines[] = {{3, x, high}, {3, x, low}}, point = {1, x, high};
    box box = {.width = 30, .height = 13};
    CHECK(find_room(&box, &lines[0], lines, 2, 0, 200, 0, 150), "expected room");
    CHECK(box.x >= 15 && box.x <= 185 && box.y + 6.5 < 50 && box.y > 25, "expected it above its line, got %g, %g",
          box.x, box.y);
    CHECK(!find_room(&box, &point, &point, 1, 0, 200, 0, 150), "expected no room on a line of one point");
}

int main(void) {
    test_ticks();
    test_pushing();
    test_room();
    return check_finish();
}
