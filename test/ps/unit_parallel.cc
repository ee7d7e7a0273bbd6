#include <random>

#include "expect.h"
#include "ps/internal/assign_op.h"
#include "ps/internal/parallel_kv_match.h"
#include "ps/internal/parallel_sort.h"

using namespace ps;

static void Assigning()
{
    int a = 6;
    AssignFunc(2, PLUS, &a);
    AssignFunc(3, MINUS, &a);
    AssignFunc(4, TIMES, &a);
    AssignFunc(2, DIVIDE, &a);
    EXPECT(a == 10);
    AssignFunc(7, ASSIGN, &a);
    EXPECT(a == 7);
    EXPECT_THROW(AssignFunc(1, AND, &a));
    AssignFuncInt(6, AND, &a);
    AssignFuncInt(9, OR, &a);
    AssignFuncInt(1, XOR, &a);
    EXPECT(a == 14);
    AssignFuncInt(1, PLUS, &a);
    EXPECT(a == 15);
}

static void Sorting()
{
    std::mt19937 random(7);
    for (size_t n : {0u, 1u, 5u, 20000u, 100001u}) {
        SArray<uint32_t> a(n);
        for (auto &v : a)
            v = static_cast<uint32_t>(random());
        std::vector<uint32_t> expected(a.begin(), a.end());
        std::sort(expected.begin(), expected.end());
        SArray<uint32_t> b;
        b.CopyFrom(a);
        ParallelSort(&a);
        EXPECT(std::equal(expected.begin(), expected.end(), a.begin()));
        ParallelSort(&b, 3, std::greater<uint32_t>());
        EXPECT(std::equal(expected.rbegin(), expected.rend(), b.begin()));
    }
}

static void Matching()
{
    SArray<Key> src{1, 3, 4, 9}, dst{0, 3, 4, 5, 9, 10};
    SArray<float> src_val{10, 11, 30, 31, 40, 41, 90, 91};
    std::vector<float> out;
    EXPECT(ParallelOrderedMatch(src, src_val, dst, &out, 2) == 3);
    EXPECT(out == std::vector<float>({0, 0, 30, 31, 40, 41, 0, 0, 90, 91, 0, 0}));
    EXPECT(ParallelOrderedMatch(src, src_val, dst, &out, 2, PLUS) == 3);
    EXPECT(out[2] == 60 && out[9] == 182 && out[0] == 0);
    SArray<float> shared;
    EXPECT(ParallelOrderedMatch(src, src_val, SArray<Key>(), &shared, 2) == 0 && shared.empty());
    EXPECT_THROW(ParallelOrderedMatch(src, src_val, dst, &out, 3));

    const size_t n = 1 << 22; /* enough for several threads */
    SArray<Key> many(n), even(n / 2);
    SArray<int> vals(n);
    for (size_t i = 0; i < n; i++) {
        many[i] = i;
        vals[i] = static_cast<int>(i);
        even[i / 2] = i & ~size_t(1);
    }
    SArray<int> got;
    EXPECT(ParallelOrderedMatch(many, vals, even, &got, 1, ASSIGN, 4) == n / 2);
    bool right = true;
    for (size_t i = 0; i < n / 2; i++)
        right = right && got[i] == static_cast<int>(2 * i);
    EXPECT(right);
}

int main()
{
    Assigning();
    Sorting();
    Matching();
    return Failures("parallel");
}
